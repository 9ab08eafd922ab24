"""The kernels alone: functions that say when they refuse."""

from __future__ import annotations

import uuid
from functools import cache
from typing import TYPE_CHECKING, Any

from flexwire.kernels.cache import load
from flexwire.kernels.objects.program import ObjectProgram
from tests.codec.made_up import everything

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
    program = ObjectProgram(definition.schema(version), definition.classes)
    return (
        program.function(kernels.decode, kernels.read_struct, "decode", lambda _: REFUSED),
        program.function(kernels.encode, kernels.write_struct, "encode", lambda _: REFUSED),
    )


def full_message() -> Any:
    """Give a message with a value of every type in version 1."""
    kind: Any = everything()
    return kind(
        id=uuid.UUID(int=7),
        ids=[uuid.UUID(int=8)],
        names=["größe", "n"],
        topics=[kind.Topic(name="t", leader=kind.Leader(epoch=70_000)) for _ in range(20)],
        rack="r",
        level=100_000,
        current=kind.Current(leader_id=5_000_000),
        marks=[2**40] * 10,
        ratio=2.5,
    )


def has_unordered_tags(value: Any) -> bool:
    """Whether unknown tagged fields stand anywhere in it in another order than on the wire."""
    if isinstance(value, list):
        return any(map(has_unordered_tags, value))
    names = getattr(value, "__struct_fields__", ())
    tags = list(getattr(value, "unknown_tagged_fields", ()))
    return tags != sorted(tags) or any(has_unordered_tags(getattr(value, name)) for name in names)
