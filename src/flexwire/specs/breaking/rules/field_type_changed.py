"""The type of a field changed in an existing version.

The same bytes now represent a different value, or the value has a different size.

Flagged: `"type": "int32"` that is now `"type": "int64"`; an array that is now a single value.
Not flagged: another name for a structure, and bytes for records, which are the same on the wire.

Instead: end the field, `"versions": "0-4"`, and add a field with the new type and a new name,
`"versions": "5+"`.

Source: KIP-482, "Tagged Fields and Version Compatibility": "nor can we alter the format of a tagged
field"; for other fields, "Compatibility, Deprecation, and Migration Plan".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.breaking.rule import BreakingRule, Breaks

if TYPE_CHECKING:
    from flexwire.schema.pairs import StructurePair
    from flexwire.specs.breaking.rule import Differences


def _find(pair: StructurePair) -> Differences:
    for old, new in pair.both():
        if old.kind != new.kind:
            text = f"{pair.path_of(new)} was {old.spec.type} and is now {new.spec.type}"
            yield new.spec.position, f"{text}; add a field in a new version instead"


RULE = BreakingRule(__name__, __doc__, Breaks.WIRE, structure=_find)
