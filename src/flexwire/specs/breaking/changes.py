"""Find the breaking changes of a message spec. Each change is reported once, with all versions.

Old messages are matched with new messages, and some old messages may have no match. A message
counts as removed only if the new input would have to contain it. Only the given input is compared:
if one file is compared with a release, the other messages of the release are not expected.

Changes to preview versions do not count as breaking. If a request has `latestVersionUnstable`,
brokers offer its highest version only if `unstable.api.versions.enable` is set, and Kafka may still
change that version. This also applies to the response, although only the request has the property.
Source: KAFKA-14391, Kafka 3.5.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, product
from typing import TYPE_CHECKING

from flexwire.schema.editions import InputKind
from flexwire.schema.pairs import SpecVersion, structure_pairs
from flexwire.schema.sources import turning_points
from flexwire.schema.spec import FIRST, MessageType, narrowed
from flexwire.specs.breaking import rules
from flexwire.specs.breaking.rule import continued
from flexwire.specs.finding import rules_of
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from flexwire.schema.editions import Edition, SpecOrigin
    from flexwire.schema.spec import Position
    from flexwire.specs.breaking.rule import BreakingRule

    Editions = Mapping[str, Edition]
    Matched = tuple[Edition, Edition | None]


@cache
def breaking_rules() -> dict[str, BreakingRule]:
    """Return every rule by its id, in alphabetical order."""
    return rules_of(rules)


@dataclass(frozen=True, slots=True)
class BreakingChange:
    """A breaking change to a spec.

    ``position`` is a place in the new spec, or the first line if the message was removed.
    ``versions`` contains the affected versions, and is empty if the message as a whole is affected.
    """

    rule: BreakingRule
    message: str
    position: Position
    reason: str
    versions: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The reason, with the affected versions."""
        if not self.versions:
            return self.reason
        several = "s" if len(self.versions) > 1 else ""
        what, semicolon, remedy = self.reason.partition("; ")
        where = f"in version{several} {Versions.of(self.versions)}"
        return f"{what}, {where}{semicolon}{remedy}"


def find_changes(
    old: Edition, new: Edition | None, rules: Iterable[BreakingRule]
) -> list[BreakingChange]:
    """Compare a message in all common versions. ``new`` is None if the message was removed.

    Raises `SpecError` for a spec that cannot be laid out.
    """
    own_text = old.own_text and (new is None or new.own_text)
    rules = tuple(item for item in rules if own_text or not item.needs_own_text)
    name = old.spec.name
    broken_things = [
        BreakingChange(rule, name, position, reason)
        for rule in rules
        if rule.message
        for position, reason in rule.message(old.spec, new.spec if new else None)
    ]
    if new is None:
        return broken_things
    versions: dict[tuple[BreakingRule, Position, str], list[int]] = defaultdict(list)
    for before, run in _runs(old, new):
        sides = SpecVersion(old.at(before), before), SpecVersion(new.at(run[0]), run[0])
        for difference in _differences(*sides, rules):
            versions[difference] += run
    broken_things += [
        BreakingChange(rule, name, position, reason, tuple(broken))
        for (rule, position, reason), broken in versions.items()
    ]
    broken_things = [
        replace(item, position=new.top) if item.position == FIRST else item
        for item in broken_things
    ]
    return sorted(
        broken_things, key=lambda item: (item.position.line, item.position.column, item.rule.id)
    )


def _runs(old: Edition, new: Edition) -> Iterator[tuple[int, range]]:
    """Yield the common versions, in runs in which neither side changes its layout.

    Each run comes with the old version to compare with its first version. These two versions differ
    only if a version number has changed its meaning.
    """
    same = continued(old.spec, new.spec)
    if same is not None:
        if same[0] in old.spec.valid_versions and same[1] in new.spec.valid_versions:
            yield same[0], range(same[1], same[1] + 1)
        return
    common = old.spec.valid_versions & new.spec.valid_versions
    begins: set[int] = set()
    for edition in (old, new):
        begins.update(*({version, version + 1} for version in edition.by_version))
        for spec in (edition.spec, *edition.by_version.values()):
            begins.update(turning_points(spec))
    for lowest, highest in common.ranges:
        edges = sorted({lowest, *(begin for begin in begins if lowest < begin <= highest)})
        for begin, end in pairwise([*edges, highest + 1]):
            yield begin, range(begin, end)


def _differences(
    old: SpecVersion, new: SpecVersion, rules: tuple[BreakingRule, ...]
) -> Iterator[tuple[BreakingRule, Position, str]]:
    for pair in structure_pairs(old, new):
        for rule in rules:
            if rule.structure:
                for position, reason in rule.structure(pair):
                    yield rule, position, reason


def match_messages(old: Editions, new: Editions) -> Iterator[Matched]:
    """Pair old messages with new ones by name, or by API key if the name changed.

    A removed message is paired with None. An old message that the new input does not have to
    contain is left out.
    """
    partners = {name: new.get(name) or partner for name, partner in _by_key(old, new)}
    matched = [(edition, partners[name]) for name, edition in old.items()]
    scope = _Scope(matched, new)
    for edition, partner in matched:
        if partner is not None or scope.would_have(edition.place):
            yield edition, partner


def _by_key(old: Editions, new: Editions) -> Iterator[tuple[str, Edition | None]]:
    """Yield, for each old name, the message with the same API key and type under a new name.

    Request API keys are unique across all of Kafka. Each module numbers its records separately. If
    any directories have messages in common, two records therefore match only if their own
    directories have messages in common.
    """
    by_key = defaultdict(list)
    for name, edition in new.items():
        if name not in old and edition.spec.api_key is not None:
            by_key[edition.spec.api_key, edition.spec.type].append(edition)
    common = {(edition.place, new[name].place) for name, edition in old.items() if name in new}
    matched_places = {place for both in common for place in both}
    for name, edition in old.items():
        partner = None
        if name not in new and edition.spec.api_key is not None:
            for other in by_key.get((edition.spec.api_key, edition.spec.type), ()):
                places = edition.place, other.place
                if (
                    edition.spec.type.is_api
                    or places in common
                    or matched_places.isdisjoint(places)
                ):
                    partner = other
        yield name, partner


class _Scope:
    """The places whose messages the new side should contain. A missing message counts as removed.

    Directories may have different names in different places, so they are recognized by their
    content. Two directories correspond if they have a message in common, or the same path relative
    to the given path. If the complete old input is inside the new input, all its messages are
    expected. Otherwise only messages in corresponding directories are expected. The same applies to
    a release, because some of its modules may not have been imported.
    """

    def __init__(self, matched: list[Matched], new: Editions) -> None:
        self.everything = not new
        shared = {
            (edition.place, partner.place)
            for edition, partner in matched
            if partner and InputKind.FILE not in {edition.place.given, partner.place.given}
        }
        roots = {(before.root, after.root) for before, after in shared}
        paired = {root for both in roots for root in both}
        old_places = {
            edition.place for edition, _ in matched if edition.place.given is not InputKind.FILE
        }
        new_places = {
            edition.place for edition in new.values() if edition.place.given is not InputKind.FILE
        }
        for before, after in product(old_places, new_places):
            strangers = before.root not in paired and after.root not in paired
            if before.directory == after.directory and (
                strangers or (before.root, after.root) in roots
            ):
                shared.add((before, after))
        self.places = {before for before, _ in shared}
        self.roots = {before.root for before, after in shared if _holds(after, before)}

    def would_have(self, place: SpecOrigin) -> bool:
        """Return whether the new side would contain a message from this place."""
        return (
            self.everything
            or place.given is InputKind.FILE
            or place.root in self.roots
            or place in self.places
        )


def _holds(after: SpecOrigin, before: SpecOrigin) -> bool:
    """Return whether the new input contains the old input, judged by corresponding directories."""
    inside = f"/{after.directory}".endswith(f"/{before.directory}") or not before.directory
    return after.given is InputKind.TREE and inside


def without_unstable(editions: Mapping[str, Edition]) -> dict[str, Edition]:
    """Return the messages by name, without the versions that their requests mark as unstable.

    A response without its request is returned unchanged, because the unstable version is unknown.
    """
    unstable = {
        edition.spec.api_key: edition.spec.valid_versions.highest
        for edition in editions.values()
        if edition.spec.type is MessageType.REQUEST
        and edition.spec.latest_version_unstable
        and edition.spec.valid_versions
    }
    return {
        name: _without(edition, unstable[edition.spec.api_key])
        if edition.spec.type.is_api and edition.spec.api_key in unstable
        else edition
        for name, edition in editions.items()
    }


def _without(edition: Edition, version: int) -> Edition:
    left = Versions.of(other for other in edition.spec.valid_versions if other != version)
    return replace(edition, spec=narrowed(edition.spec, left))
