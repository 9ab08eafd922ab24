"""A field was removed from an existing version.

A reader with the new spec reads the bytes of this field as those of the next field. Old bytes still
contain the field, and peers that were not upgraded still use it.

Flagged: `Epoch`, `"versions": "0+"`, deleted, or given `"versions": "5+"`, where version 4 was
valid before.

Instead: keep the field in the existing versions, and end its range before the next version:
`"versions": "0-4"`.

Source: KIP-482, "Motivation": an inline field "must always be present"; all version changes in
Kafka.
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
            field_pair.old
            and field_pair.old.is_inline
            and not (field_pair.new and field_pair.new.is_there)
        ):
            position = field_pair.new.spec.position if field_pair.new else pair.position
            text = f"{pair.path_of(field_pair.old)} ({field_pair.old.spec.type}) was removed"
            yield position, f"{text}; instead, end its versions with the newest existing version"


RULE = BreakingRule(__name__, __doc__, Breaks.WIRE, structure=_find)
