"""A field is no longer ignorable, and an existing version does not contain it.

Code that sets an ignorable field can still write versions without the field, because these versions
omit the field. Once the field is no longer ignorable, writing such a version fails. A broker that
sets the field in a response then cannot answer an older client at all. A client that sets the field
in a request cannot talk to an older broker.

Flagged: `"ignorable": true` removed from a field with `"versions": "3+"`, where version 2 is valid.
Not flagged: the same change if every valid version has the field, because `ignorable` then has no
effect; a field that becomes ignorable.

Instead: leave the field ignorable until the versions without it are gone.

Source: KIP-482, "Ignorable Fields". Kafka has done this once: FetchResponse.PreferredReadReplica in
2.7, where the broker sets the field only for clients of version 11 and later.
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
            field_pair.old is None
            or field_pair.new is None
            or field_pair.old.is_there
            or field_pair.new.is_there
        ):
            continue
        if field_pair.old.field.ignorable and not field_pair.new.field.ignorable:
            path = pair.path_of(field_pair.new)
            text = f"{path} is no longer ignorable, so writing fails if the field is set"
            yield field_pair.new.spec.position, f"{text}; keep the field ignorable"


RULE = BreakingRule(__name__, __doc__, Breaks.SUPPORT, structure=_find, needs_own_text=True)
