from collections.abc import Callable
from typing import Any

from flexwire.kernels.objects import Program

def encoder(program: Program, fallback: Callable[[Any], Any]) -> Callable[[Any], bytes]: ...
