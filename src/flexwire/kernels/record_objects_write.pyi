from collections.abc import Callable
from typing import Any

from flexwire.kernels.record_objects import Classes

def records_writer(classes: Classes, fallback: Callable[..., Any]) -> Callable[..., Any]: ...
def batch_writer(classes: Classes, fallback: Callable[..., Any]) -> Callable[..., Any]: ...
