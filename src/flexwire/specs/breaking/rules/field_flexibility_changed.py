"""A field of an existing version became compact, or is no longer compact.

The length of a compact field is an unsigned varint. The length of any other field is an int16 or
int32.

Flagged: a field's own `"flexibleVersions": "none"`, added or removed.

Instead: keep the field's `flexibleVersions`.

Source: KIP-482, "Serialization"; RequestHeader.json, whose ClientId needs this key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.breaking.rule import BreakingRule, Breaks
from flexwire.wire.types import ArrayType

if TYPE_CHECKING:
    from flexwire.schema.pairs import StructureMember, StructurePair
    from flexwire.specs.breaking.rule import Differences


def _is_compact(member: StructureMember) -> tuple[bool, bool]:
    kind = member.field.type
    element = kind.element if isinstance(kind, ArrayType) else None
    return getattr(kind, "compact", False), getattr(element, "compact", False)


def _find(pair: StructurePair) -> Differences:
    # If the whole version changed, another rule reports the change once.
    if not pair.same_flexibility:
        return
    for old, new in pair.both():
        # Another rule reports fields that move to or from the tag section.
        if (
            old.is_inline == new.is_inline
            and old.kind == new.kind
            and _is_compact(old) != _is_compact(new)
        ):
            was = "not compact and now is" if any(_is_compact(new)) else "compact and now is not"
            text = f"{pair.path_of(new)} was {was}"
            yield new.spec.position, f"{text}; restore the old flexibleVersions"


RULE = BreakingRule(__name__, __doc__, Breaks.WIRE, structure=_find)
