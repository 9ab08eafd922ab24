"""Call only the kernels, with functions that report a refusal."""

from __future__ import annotations

import uuid
from functools import cache
from typing import TYPE_CHECKING, Any

from flexwire.kernels import objects, objects_read, objects_write
from tests.codec.made_up import everything, made

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.codec import Message

REFUSED = object()


@cache
def functions(
    made: type[Message], version: int
) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return the kernels' decode and encode of one message version; both can return REFUSED."""
    definition = made.definition
    program = objects.Program(definition.schema(version), definition.classes)
    return (
        objects_read.decoder(program, lambda _: REFUSED),
        objects_write.encoder(program, lambda _: REFUSED),
    )


def full_message() -> Any:
    """Return a message that contains a value of every type in version 1."""
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


_TAGGED = {"versions": "2+", "taggedVersions": "2+", "tag": 0, "ignorable": True}
_OLD = {"name": "Old", "type": "int32", "versions": "3+", "ignorable": True}
_EPOCH = {"name": "Epoch", "type": "int32", "versions": "2+"}
# A structure is compared with its default, including fields that the version lacks.
CURRENT = {"name": "Current", "type": "Current", **_TAGGED, "fields": [_OLD, _EPOCH]}
_ROWS = [
    {"name": "Rows", "type": "[]Row", "versions": "2+", "fields": [CURRENT]},
    {"name": "Rack", "type": "string", "versions": "2+"},
]


@cache
def hooked() -> Any:
    """Return a message whose rows run Python code while its version 2 is encoded; see `row`."""
    return made(_ROWS)


def row(act: Callable[[], object]) -> Any:
    """Return a row that calls a function when it is encoded, and ignores the result."""

    class Acts:
        __hash__ = None  # type: ignore[assignment]  # as Python does where __eq__ is

        def __eq__(self, other: object) -> bool:
            act()
            return False

    kind = hooked()
    return kind.Row(current=kind.Current(old=Acts(), epoch=1))


def has_unordered_tags(value: Any) -> bool:
    """Return whether any unknown tagged fields are in a different order from that on the wire."""
    if isinstance(value, list):
        return any(map(has_unordered_tags, value))
    names = getattr(value, "__struct_fields__", ())
    tags = list(getattr(value, "unknown_tagged_fields", ()))
    return tags != sorted(tags) or any(has_unordered_tags(getattr(value, name)) for name in names)
