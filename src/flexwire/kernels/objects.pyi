from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from flexwire.wire.schema import Schema

class UnsuitableError(Exception): ...

class Program:
    def __init__(self, schema: Schema, classes: Mapping[str, type[msgspec.Struct]]) -> None: ...

class Call:
    def __init__(self, program: Program, fallback: Callable[[Any], Any]) -> None: ...
