"""The catalog of message specs that ships in the package: every message of every Kafka release.

`index.json` says which messages there are, in which releases, and which of a message's specs holds
for which versions. A message's own file holds its specs as KIP-482 JSON, newest first; it is read
when it is asked for.
"""

from __future__ import annotations

import json
from difflib import get_close_matches
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexwire.errors import SpecError, UnknownMessageError
from flexwire.schema.parse import parse_node
from flexwire.schema.spec import MessageType
from flexwire.schema.text import Array, SpecText
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.schema.spec import MessageSpec

INDEX = "index.json"


@cache
def catalog() -> Catalog:
    """The bundled catalog.

    >>> catalog().entry("ApiVersionsRequest").api_key
    18
    >>> catalog().entry("FetchRequst")
    Traceback (most recent call last):
    flexwire.errors.UnknownMessageError: no message 'FetchRequst'; did you mean FetchRequest?
    """
    return Catalog(Path(__file__).with_name("bundled"))


class Catalog:
    """The messages of a directory that `import_specs` wrote.

    Raises `SpecError` where there is none.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        source = root / INDEX
        try:
            index = json.loads(source.read_text(encoding="utf-8"))
            self.release_modules: dict[str, tuple[str, ...]] = {
                release: tuple(modules) for release, modules in index["releases"].items()
            }
            self._messages: dict[str, dict[str, Any]] = index["messages"]
        except (OSError, ValueError, KeyError) as error:
            reason = f"no catalog of specs ({error!r}); write one with 'flexwire schema import'"
            raise SpecError(reason, source=str(source)) from None
        self.releases = tuple(self.release_modules)
        self._entries: dict[str, Entry] = {}

    @property
    def newest_release(self) -> str:
        """The newest release; it need not have every module."""
        return self.releases[-1]

    def newest_release_of(self, module: str) -> str:
        """The newest release whose specs of ``module`` are in the catalog."""
        for release in reversed(self.releases):
            if module in self.release_modules[release]:
                return release
        raise UnknownMessageError(f"no release has a module {module!r}")

    def names(self) -> tuple[str, ...]:
        """Every message's name, in alphabetical order."""
        return tuple(self._messages)

    def entry(self, name: str) -> Entry:
        """What the catalog knows of a message; `UnknownMessageError` suggests the nearest names."""
        if name not in self._entries:
            if name not in self._messages:
                reason = f"no message {name!r}; {_nearest(name, self.names())}"
                raise UnknownMessageError(reason)
            self._entries[name] = Entry(self, name, self._messages[name])
        return self._entries[name]

    @cached_property
    def _by_api_key(self) -> dict[tuple[int, MessageType], tuple[Entry, ...]]:
        """Requests and responses by api key, newest name first."""
        found: dict[tuple[int, MessageType], list[Entry]] = {}
        for name, facts in self._messages.items():
            if facts["type"] in ("request", "response"):
                key = (facts["apiKey"], MessageType(facts["type"]))
                found.setdefault(key, []).append(self.entry(name))
        order = self.releases.index
        for entries in found.values():
            entries.sort(key=lambda entry: order(entry.last_release), reverse=True)
        return {key: tuple(entries) for key, entries in found.items()}

    def by_api_key(self, api_key: int, type: MessageType, version: int | None = None) -> Entry:  # noqa: A002 - the spec's own word, and the contract's
        """The request or response of an api key: its newest name, or the newest with ``version``.

        >>> catalog().by_api_key(2, MessageType.REQUEST).name
        'ListOffsetsRequest'
        """
        entries = self._by_api_key.get((api_key, type), ())
        if not entries:
            raise UnknownMessageError(f"no {type.value} has api key {api_key}")
        if version is None:
            return entries[0]
        for entry in entries:
            if entry.has(version):
                return entry
        newest = entries[0]
        raise UnknownMessageError(
            f"{newest.name} has no version {version}; released are {newest.versions}"
        )

    def api_keys(self) -> tuple[int, ...]:
        """Every api key of a request, in ascending order."""
        keys = (key for key, type_ in self._by_api_key if type_ is MessageType.REQUEST)
        return tuple(sorted(keys))


class Entry:
    """A message in the catalog, over all its releases.

    ``versions`` are all that were ever released, ``flexible_versions`` as the newest spec has them,
    open-ended. ``module`` is that of the newest release, ``former_modules`` those before it.

    >>> entry = catalog().entry("ReadShareGroupStateSummaryResponse")
    >>> preview = entry.spec(0, release="4.0-trunk-20241025")
    >>> entry.spec(0) == preview
    False
    """

    def __init__(self, owner: Catalog, name: str, facts: dict[str, Any]) -> None:
        self._catalog = owner
        self.name = name
        self.module: str = facts["module"]
        self.former_modules: tuple[str, ...] = tuple(facts.get("formerModules", ()))
        self.type = MessageType(facts["type"])
        self.api_key: int | None = facts.get("apiKey")
        self.versions = Versions.parse(facts["versions"])
        self.flexible_versions = Versions.parse(facts["flexibleVersions"])
        # For every spec in the message's file: from which release to which it gives the layout
        # of which versions.
        self._serves: list[list[tuple[str, str, str]]] = facts["specs"]

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
    def _specs(self) -> tuple[MessageSpec, ...]:
        path = self._catalog.root / self.module / f"{self.name}.json"
        text = SpecText(path.read_text(encoding="utf-8"), path.name)
        node = text.read(whole=True)
        items = node.items if isinstance(node, Array) else [node]
        return tuple(parse_node(text, one, mode="strict") for one in items)

    def has(self, version: int) -> bool:
        """Whether any release has the version."""
        return version in self._defaults

    def spec(self, version: int, release: str | None = None) -> MessageSpec:
        """The spec whose layout holds for the version: in ``release``, or in the newest with it.

        A few versions changed their layout from release to release, mostly while they were a
        preview. Raises `UnknownMessageError` for a version or a release that there is not.
        """
        if release is None:
            if version not in self._defaults:
                reason = f"{self.name} has no version {version}; released are {self.versions}"
                raise UnknownMessageError(reason)
            return self._specs[self._defaults[version]]
        for versions, number in self._revisions.get(release, ()):
            if version in versions:
                return self._specs[number]
        raise UnknownMessageError(self._missing(version, release))

    def specs(self) -> tuple[tuple[MessageSpec, Versions], ...]:
        """Every spec that gives versions their layout by default, with these, newest first.

        A spec whose versions are not in one range is there once for each range.
        """
        ranges: list[tuple[int, Versions]] = []
        for version, number in sorted(self._defaults.items()):
            if ranges and ranges[-1] == (number, Versions(ranges[-1][1].lowest, version - 1)):
                ranges[-1] = (number, Versions(ranges[-1][1].lowest, version))
            else:
                ranges.append((number, Versions(version, version)))
        ranges.sort(key=lambda item: item[0])
        return tuple((self._specs[number], versions) for number, versions in ranges)

    def all_specs(self) -> tuple[MessageSpec, ...]:
        """Every spec in the message's file, newest first, also those only a release reaches."""
        return self._specs

    def _missing(self, version: int, release: str) -> str:
        known = self._catalog.releases
        if release not in known:
            return f"no release {release!r}; {_nearest(release, known)}"
        if release in self.releases:
            return (
                f"{self.name} has no version {version} in {release}; "
                f"valid there are {self.releases[release]}"
            )
        return f"{self.name} is not in {release}; it is in {', '.join(self.releases)}"


def _nearest(word: str, words: Sequence[str]) -> str:
    lowered = {one.lower(): one for one in words}
    begun = [one for one in lowered if word and one.startswith(word.lower())]
    close = begun[:3] or get_close_matches(word.lower(), lowered, n=3, cutoff=0.8)
    if close:
        return f"did you mean {' or '.join(lowered[one] for one in close)}?"
    if len(words) <= 20:  # noqa: PLR2004 - what a person reads in a glance
        return f"there are {', '.join(words)}"
    return "see 'flexwire schema list'"
