"""A field of an existing version became nullable, or is no longer nullable.

A reader that does not expect null rejects the message. If the field is a structure, all its bytes
move too: an extra byte precedes a nullable structure.

Flagged: `"nullableVersions": "0+"` added where version 0 was valid before, or removed.

Instead: change the field in a new version, `"nullableVersions": "5+"`. Do not do this for a tagged
field: see the source.

Source: KIP-482, "Tagged Fields and Version Compatibility": "This includes changing a nullable field
to a non-nullable one, or vice versa. When you create the tagged field, you must decide if it will
be nullable or not, and stick with that decision forever."
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.breaking.rule import BreakingRule, Breaks

if TYPE_CHECKING:
    from flexwire.schema.pairs import StructurePair
    from flexwire.specs.breaking.rule import Differences


def _find(pair: StructurePair) -> Differences:
    for old, new in pair.both():
        if old.field.nullable != new.field.nullable:
            can = (
                "not be null and now can be null"
                if new.field.nullable
                else "be null and now cannot"
            )
            text = f"{pair.path_of(new)} could {can}"
            yield new.spec.position, f"{text}; change nullableVersions only for a new version"


RULE = BreakingRule(__name__, __doc__, Breaks.WIRE, structure=_find)
