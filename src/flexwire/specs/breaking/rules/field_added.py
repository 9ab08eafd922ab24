"""An untagged field was added to an existing version.

A writer with the old spec does not write the field. A reader with the new spec then reads the bytes
of the next field as those of this field.

Flagged: a new field with `"versions": "0+"`, where version 0 was valid before.

Instead: add a version in which the field begins, `"versions": "5+"`; or tag the field: "A tagged
field can be retroactively added to an existing message version without breaking compatibility".

Source: KIP-482, "Tagged Fields and Version Compatibility".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.breaking.rule import BreakingRule, Breaks

if TYPE_CHECKING:
    from flexwire.schema.pairs import StructurePair
    from flexwire.specs.breaking.rule import Differences


def _find(pair: StructurePair) -> Differences:
    for field_pair in pair.pairs:
        if (
            field_pair.new
            and field_pair.new.is_inline
            and not (field_pair.old and field_pair.old.is_there)
        ):
            spec = field_pair.new.spec
            text = f"{pair.path_of(field_pair.new)} ({spec.type}) is new in an existing version"
            yield spec.position, f"{text}; add the field in a new version, or tag the field"


RULE = BreakingRule(__name__, __doc__, Breaks.WIRE, structure=_find)
