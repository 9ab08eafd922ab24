"""A message in the catalog, over all its releases."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from flexwire.errors import SpecError, UnknownMessageError
from flexwire.schema.parse import parse_node
from flexwire.schema.resolve import resolve
from flexwire.schema.spec import MessageType, narrowed
from flexwire.schema.text import Array, SpecText
from flexwire.versions import Versions

if TYPE_CHECKING:
    from flexwire.schema.spec import MessageSpec
    from flexwire.schema.text import Node


class Owner(Protocol):
    """What an entry asks of the catalog that it is in."""

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases in it, oldest first."""

    def read(self, *path: str) -> str:
        """The text of one of its files."""

    def newest_release_of(self, module: str) -> str:
        """The newest release whose specs of ``module`` are in it."""

    def release(self, asked: str) -> str:
        """The release that a person means."""


class Entry:
    """A message in the catalog, over all its releases.

    ``versions`` are all that were ever released, ``flexible_versions`` as the newest spec has them,
    open-ended. ``module`` is that of the newest release, ``former_modules`` those before it.

    >>> from flexwire.schema.catalog import catalog
    >>> entry = catalog().entry("ReadShareGroupStateSummaryResponse")
    >>> entry.spec(0) == entry.spec(0, release="4.0")
    False
    """

    def __init__(self, owner: Owner, name: str, facts: dict[str, Any]) -> None:
        self._catalog = owner
        self.name = name
        self.module: str = facts["module"]
        self.former_modules: tuple[str, ...] = tuple(facts.get("formerModules", ()))
        self.type = MessageType(facts["type"])
        self.api_key: int | None = facts.get("apiKey")
        self.versions = Versions.parse_set(facts["versions"])
        self.flexible_versions = Versions.parse(facts["flexibleVersions"])
        # For every spec in the message's file: from which release to which it gives the layout
        # of which versions.
        self._serves: list[list[tuple[str, str, str]]] = facts["specs"]
        self._parsed: dict[int, MessageSpec] = {}

    def __repr__(self) -> str:
        return f"Entry({self.name!r}, versions {self.versions})"

    @cached_property
    def _revisions(self) -> dict[str, list[tuple[Versions, int]]]:
        """By release, oldest first: the version ranges and the spec that serves each."""
        place = {release: number for number, release in enumerate(self._catalog.releases)}
        found: dict[int, list[tuple[Versions, int]]] = {}
        for number, runs in enumerate(self._serves):
            for first, last, text in runs:
                served = (Versions.parse(text), number)
                for release in range(place[first], place[last] + 1):
                    found.setdefault(release, []).append(served)
        return {self._catalog.releases[release]: found[release] for release in sorted(found)}

    @cached_property
    def releases(self) -> dict[str, Versions]:
        """The releases that have the message, oldest first, and its valid versions there."""
        valid = {}
        for release, served in self._revisions.items():
            valid[release] = Versions.NONE
            for versions, _ in served:
                valid[release] |= versions
        return valid

    @property
    def last_release(self) -> str:
        """The newest release that has the message."""
        return next(reversed(self.releases))

    @property
    def current_versions(self) -> Versions:
        """The valid versions in the newest release that has the module; "none" if removed."""
        newest = self._catalog.newest_release_of(self.module)
        return self.releases.get(newest, Versions.NONE)

    @cached_property
    def _defaults(self) -> dict[int, int]:
        """By version: the spec of the newest release that has it."""
        newest: dict[int, int] = {}
        for served in self._revisions.values():
            newest |= {version: number for versions, number in served for version in versions}
        return newest

    @cached_property
    def _nodes(self) -> tuple[SpecText, list[Node]]:
        file = f"{self.name}.json"
        text = SpecText(self._catalog.read(self.module, file), file)
        node = text.read(whole=True)
        return text, node.items if isinstance(node, Array) else [node]

    def _spec(self, number: int) -> MessageSpec:
        # Half of the specs serve single releases only, and are hardly ever asked for.
        if number not in self._parsed:
            text, nodes = self._nodes
            self._parsed[number] = parse_node(text, nodes[number], mode="strict")
        return self._parsed[number]

    def spec(self, version: int, release: str | None = None) -> MessageSpec:
        """The spec whose layout holds for the version: in ``release``, or in the newest with it.

        ``release`` is a name that `Catalog.release` takes. A few versions changed their layout from
        release to release, mostly while they were a preview. Raises `UnknownMessageError` for a
        version or a release that does not exist.
        """
        if release is None:
            if version not in self._defaults:
                reason = f"{self.name} has no version {version}; released are {self.versions}"
                raise UnknownMessageError(reason)
            return self._spec(self._defaults[version])
        release = self._catalog.release(release)
        for versions, number in self._revisions.get(release, ()):
            if version in versions:
                return self._spec(number)
        raise UnknownMessageError(self._missing(version, release))

    def served(self, release: str) -> list[tuple[MessageSpec, Versions]]:
        """The specs that give a release's versions their layout, with these versions."""
        ranges = self._revisions.get(release, ())
        return [(self._spec(number), versions) for versions, number in ranges]

    def whole_spec(self, release: str) -> MessageSpec:
        """One spec that gives every version of a release its layout, and has no others' fields.

        Raises `SpecError` where the catalog keeps none; of Kafka's own releases it always does.
        """
        valid = self.releases[release]
        for spec in self.all_specs():
            if valid <= spec.valid_versions and all(
                spec is served
                or resolve(spec, version).layout() == resolve(served, version).layout()
                for served, versions in self.served(release)
                for version in versions
            ):
                return narrowed(spec, valid)
        reason = f"{self.name} has no one spec for {valid} there; name the jars of the release"
        raise SpecError(reason, source=f"release:{release}")

    def specs(self) -> tuple[tuple[MessageSpec, Versions], ...]:
        """Every spec that gives versions their layout by default, with these, newest first.

        A spec whose versions are not one range is listed once for each range.
        """
        ranges: list[tuple[int, Versions]] = []
        for version, number in sorted(self._defaults.items()):
            if ranges and ranges[-1] == (number, Versions(ranges[-1][1].lowest, version - 1)):
                ranges[-1] = (number, Versions(ranges[-1][1].lowest, version))
            else:
                ranges.append((number, Versions(version, version)))
        ranges.sort(key=lambda item: item[0])
        return tuple((self._spec(number), versions) for number, versions in ranges)

    def all_specs(self) -> tuple[MessageSpec, ...]:
        """Every spec in the message's file, newest first, also those only a release reaches."""
        return tuple(map(self._spec, range(len(self._serves))))

    def _missing(self, version: int, release: str) -> str:
        if release in self.releases:
            return (
                f"{self.name} has no version {version} in {release}; "
                f"valid there are {self.releases[release]}"
            )
        return f"{self.name} is not in {release}; it is in {', '.join(self.releases)}"
