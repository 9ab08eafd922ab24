"""A mandatory field of an existing version became tagged, or a tagged field became mandatory.

The field moved into or out of the tag section.

Flagged: `"taggedVersions": "3+"` on a field that was mandatory in version 3.

Instead: migrate with a new version: `"versions": "0+", "taggedVersions": "5+"`. "A field can be
specified as tagged in some versions and non-tagged in others. The main use-case for this is to
gracefully migrate fields which were previously mandatory to tagged fields, where appropriate."

Source: KIP-482, "Tagged Fields and Version Compatibility".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.breaking.rule import BreakingRule, Breaks

if TYPE_CHECKING:
    from flexwire.schema.pairs import StructurePair
    from flexwire.specs.breaking.rule import Differences


def _find(pair: StructurePair) -> Differences:
    for old, new in pair.both():
        if old.is_tagged != new.is_tagged:
            was = "mandatory and is now tagged" if new.is_tagged else "tagged and is now mandatory"
            text = f"{pair.path_of(new)} was {was}"
            yield new.spec.position, f"{text}; make this change in a new version instead"


RULE = BreakingRule(__name__, __doc__, Breaks.WIRE, structure=_find)
