"""An existing version became flexible, or is no longer flexible.

This changes the lengths, the tag sections and the header version.

Flagged: `"flexibleVersions": "3+"` that is now `"flexibleVersions": "2+"`, where version 2 was
valid before.

Instead: begin the flexible versions with a new version.

Source: KIP-482, "Tagged Fields and Version Compatibility": "we cannot retroactively change an
inflexible version to a flexible one".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.breaking.rule import BreakingRule, Breaks

if TYPE_CHECKING:
    from flexwire.schema.pairs import StructurePair
    from flexwire.specs.breaking.rule import Differences


def _find(pair: StructurePair) -> Differences:
    if not pair.path and not pair.same_flexibility:
        was = "not flexible and now is" if pair.new.flexible else "flexible and now is not"
        yield pair.position, f"{pair.name} was {was}; begin flexible versions with a new version"


RULE = BreakingRule(__name__, __doc__, Breaks.WIRE, structure=_find)
