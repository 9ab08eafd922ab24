"""Old messages and new ones side by side, and which of the old ones are gone.

A message is gone if what was given would have to hold it. Only what was given is compared: when one
file is compared with a release, the release's other messages are not missed.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from typing import TYPE_CHECKING

from flexwire.schema.editions import Given

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flexwire.schema.editions import Edition, Place

    Editions = Mapping[str, Edition]
    Matched = tuple[Edition, Edition | None]


def match(old: Editions, new: Editions) -> Iterator[Matched]:
    """Pair the old messages with the new ones: by name, else by an api key under a new name.

    An old message that is gone has None; one that what was given need not hold is left out.
    """
    partners = {name: new.get(name) or other for name, other in _by_key(old, new)}
    found = [(one, partners[name]) for name, one in old.items()]
    scope = _Scope(found, new)
    for one, other in found:
        if other is not None or scope.would_have(one.place):
            yield one, other


def _by_key(old: Editions, new: Editions) -> Iterator[tuple[str, Edition | None]]:
    """By old name: the message that has its api key and type now, and had another name before.

    Api keys of requests are those of all Kafka. Records have theirs in each module anew, so there
    the two must stand in directories that have other messages in common, if any has.
    """
    by_key = defaultdict(list)
    for name, one in new.items():
        if name not in old and one.spec.api_key is not None:
            by_key[one.spec.api_key, one.spec.type].append(one)
    common = {(one.place, new[name].place) for name, one in old.items() if name in new}
    known = {place for both in common for place in both}
    for name, one in old.items():
        found = None
        if name not in new and one.spec.api_key is not None:
            for other in by_key.get((one.spec.api_key, one.spec.type), ()):
                places = one.place, other.place
                if one.spec.type.is_api or places in common or known.isdisjoint(places):
                    found = other
        yield name, found


class _Scope:
    """The places whose messages the new side would hold, if they still existed.

    Directories are called otherwise from place to place, so they are known by what they hold: two
    stand for each other where they have a message in common, or the same path from what was given.
    Where the whole of what was given as old stands inside of what was given as new, all of it is
    asked for; else, and in a release, whose other modules may not have been imported, what stands
    in directories that stand for each other.
    """

    def __init__(self, found: list[Matched], new: Editions) -> None:
        self.everything = not new
        shared = {
            (one.place, other.place)
            for one, other in found
            if other and Given.FILE not in {one.place.given, other.place.given}
        }
        roots = {(before.root, after.root) for before, after in shared}
        paired = {root for both in roots for root in both}
        old_places = {one.place for one, _ in found if one.place.given is not Given.FILE}
        new_places = {one.place for one in new.values() if one.place.given is not Given.FILE}
        for before, after in product(old_places, new_places):
            strangers = before.root not in paired and after.root not in paired
            if before.directory == after.directory and (
                strangers or (before.root, after.root) in roots
            ):
                shared.add((before, after))
        self.places = {before for before, _ in shared}
        self.roots = {before.root for before, after in shared if _holds(after, before)}

    def would_have(self, place: Place) -> bool:
        """Whether the new side would have a message of this place."""
        return (
            self.everything
            or place.given is Given.FILE
            or place.root in self.roots
            or place in self.places
        )


def _holds(after: Place, before: Place) -> bool:
    """Whether the top of the old stands inside of the new, seen from directories alike."""
    inside = f"/{after.directory}".endswith(f"/{before.directory}") or not before.directory
    return after.given is Given.TREE and inside
