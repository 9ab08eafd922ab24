from collections.abc import Callable
from typing import Any

import msgspec

class Classes:
    def __init__(
        self, record: type[msgspec.Struct], batch: type[msgspec.Struct] | None = None
    ) -> None: ...

class RecordCall:
    def __init__(self, classes: Classes, fallback: Callable[..., Any]) -> None: ...
