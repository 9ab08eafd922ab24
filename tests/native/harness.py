"""Programs of bundled messages whose kernels say when they refuse."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from flexwire.native.loader import load
from flexwire.native.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.codec import Message

REFUSED = object()


@cache
def functions(
    made: type[Message], version: int
) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Give the kernels' decode and encode of one message version; both give REFUSED."""
    kernels = load()
    assert kernels is not None, "the kernels run on every machine that runs the tests"
    definition = made.definition
    program = Program(definition.schema(version), definition.classes)
    return (
        program.function(kernels.decode, kernels.read_struct, "decode", lambda _: REFUSED),
        program.function(kernels.encode, kernels.write_struct, "encode", lambda _: REFUSED),
    )
