"""Functions for many messages of one version: kernels where there are any, else generated code."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.codec.definition import Definition
    from flexwire.native.loader import Kernels

# Programs live as long as the process, because a C function may outlive whoever asked for it.
_MOST_FUNCTIONS = 2048


@lru_cache(_MOST_FUNCTIONS)
def bulk_functions(
    definition: Definition, version: int
) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Give the functions that decode and encode a version; they do what the class's methods do.

    Raises `UnknownMessageError` for a version that no release has.
    """
    root: Any = definition.root
    schema = definition.schema(version)

    def decode(data: Any) -> Any:
        return root.decode(data, version)

    def encode(value: Any) -> bytes:
        return definition.encode(value, version)

    kernels = _kernels()
    if kernels is None:
        return decode, encode
    # numba is there, which the program needs too.
    from flexwire.native.program import Program, UnsuitableError  # noqa: PLC0415 - see above

    try:
        program = Program(schema, definition.classes)
    except UnsuitableError:
        return decode, encode
    return (
        program.function(kernels.decode, kernels.read_struct, "decode", decode),
        program.function(kernels.encode, kernels.write_struct, "encode", encode),
    )


def _kernels() -> Kernels | None:
    # Asked for by few, and what it needs would slow down every start.
    from flexwire.native.loader import load  # noqa: PLC0415 - see above

    return load()
