"""The default of a tagged field changed in an existing version.

A tagged field is not written if its value is the default. Bytes without the field therefore
represent a different value than before.

Flagged: `"default": "-1"` on a tagged field whose default was 0 before.

Instead: keep the default.

Source: KIP-482, "Serialization": a tagged field that is absent has its default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.breaking.rule import BreakingRule, Breaks, default_text, has_other_default

if TYPE_CHECKING:
    from flexwire.schema.pairs import StructurePair
    from flexwire.specs.breaking.rule import Differences


def _find(pair: StructurePair) -> Differences:
    for old, new in pair.both():
        if old.is_tagged and new.is_tagged and has_other_default(old, new):
            text = f"a missing {pair.path_of(new)} meant {default_text(old)}"
            yield (
                new.spec.position,
                f"{text} and now means {default_text(new)}; restore the default",
            )


RULE = BreakingRule(__name__, __doc__, Breaks.WIRE, structure=_find)
