"""All that a change of a message spec breaks, each break once for all the versions it holds in."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from flexwire.schema.pairs import SpecVersion, structure_pairs
from flexwire.schema.sources import turning_points
from flexwire.schema.spec import FIRST
from flexwire.specs.breaking import rules
from flexwire.specs.breaking.rule import continued
from flexwire.specs.page import rules_of
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexwire.schema.editions import Edition
    from flexwire.schema.spec import Position
    from flexwire.specs.breaking.rule import BreakingRule


@cache
def breaking_rules() -> dict[str, BreakingRule]:
    """Every rule by its id, in alphabetical order."""
    return rules_of(rules)


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that a change of specs breaks.

    ``position`` is a place in the new spec; the first line where the message is gone. ``versions``
    are those it breaks, empty where it breaks the message as a whole.
    """

    rule: BreakingRule
    message: str
    position: Position
    reason: str
    versions: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The reason, with the versions it holds for."""
        if not self.versions:
            return self.reason
        several = "s" if len(self.versions) > 1 else ""
        what, semicolon, remedy = self.reason.partition("; ")
        where = f"in version{several} {Versions.of(self.versions)}"
        return f"{what}, {where}{semicolon}{remedy}"


def changes(old: Edition, new: Edition | None, wanted: Iterable[BreakingRule]) -> list[Change]:
    """Compare a message in all the versions that old and new both have; None if it is gone.

    Raises `SpecError` for a spec that cannot be laid out.
    """
    own_text = old.own_text and (new is None or new.own_text)
    wanted = tuple(one for one in wanted if own_text or not one.needs_own_text)
    name = old.spec.name
    found = [
        Change(rule, name, position, reason)
        for rule in wanted
        if rule.message
        for position, reason in rule.message(old.spec, new.spec if new else None)
    ]
    if new is None:
        return found
    versions: dict[tuple[BreakingRule, Position, str], list[int]] = defaultdict(list)
    for before, run in _runs(old, new):
        sides = SpecVersion(old.at(before), before), SpecVersion(new.at(run[0]), run[0])
        for difference in _differences(*sides, wanted):
            versions[difference] += run
    found += [
        Change(rule, name, position, reason, tuple(broken))
        for (rule, position, reason), broken in versions.items()
    ]
    found = [replace(one, position=new.top) if one.position == FIRST else one for one in found]
    return sorted(found, key=lambda one: (one.position.line, one.position.column, one.rule.id))


def _runs(old: Edition, new: Edition) -> Iterator[tuple[int, range]]:
    """The versions that both have, in runs in which neither side's layout changes.

    With each run, the old version that its first one is compared with: another one only where
    numbers have changed their meaning.
    """
    same = continued(old.spec, new.spec)
    if same is not None:
        if same[0] in old.spec.valid_versions and same[1] in new.spec.valid_versions:
            yield same[0], range(same[1], same[1] + 1)
        return
    common = old.spec.valid_versions & new.spec.valid_versions
    begins: set[int] = set()
    for one in (old, new):
        begins.update(*({version, version + 1} for version in one.by_version))
        for spec in (one.spec, *one.by_version.values()):
            begins.update(turning_points(spec))
    for lowest, highest in common.ranges:
        edges = sorted({lowest, *(begin for begin in begins if lowest < begin <= highest)})
        for begin, end in pairwise([*edges, highest + 1]):
            yield begin, range(begin, end)


def _differences(
    old: SpecVersion, new: SpecVersion, wanted: tuple[BreakingRule, ...]
) -> Iterator[tuple[BreakingRule, Position, str]]:
    for pair in structure_pairs(old, new):
        for rule in wanted:
            if rule.structure:
                for position, reason in rule.structure(pair):
                    yield rule, position, reason
