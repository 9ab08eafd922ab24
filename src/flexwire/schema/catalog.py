"""The catalog of message specs: all messages of all final Kafka releases, or your own catalog.

`index.json` lists the messages, the releases that contain them, and the spec of a message for each
version. For each message, a file contains its specs as KIP-482 JSON, the newest first. This file is
read when the message is first needed. Each process uses one catalog: the bundled catalog, the
catalog in the directory ``FLEXWIRE_CATALOG``, or the catalog that `use_catalog` selected.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from flexwire.arguments import refuse
from flexwire.errors import ArgumentError, SpecError, UnknownMessageError
from flexwire.schema.header_versions import header_versions
from flexwire.schema.parse import parse_node
from flexwire.schema.resolve import resolve
from flexwire.schema.spec import HeaderVersions, MessageType, narrowed
from flexwire.schema.text import JsonArray, SpecText
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from importlib.resources.abc import Traversable

    from flexwire.schema.spec import MessageSpec
    from flexwire.schema.text import Node


# 3.9.0-rc3 comes before 3.9.0, and 4.5.0-SNAPSHOT comes before any candidate of 4.5.0.
_RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:-rc-?(\d+)|-([A-Za-z][A-Za-z0-9.-]*))?")
_BEGINNING = re.compile(r"\d+(\.\d+)*")
_FINAL, _CANDIDATE, _PREVIEW = 2, 1, 0
# The number of parts in the name of a release: major, minor and patch.
_NUMBERS = 3

Order = tuple[int, int, int, int, int, str]


def release_order(release: str) -> Order:
    """Return a key that sorts releases by age.

    Raises `SpecError` if the name is not a release name.

    >>> sorted(["4.0.0", "3.10.1", "3.9.0", "4.0-trunk", "3.9.0-rc3"], key=release_order)
    ['3.9.0-rc3', '3.9.0', '3.10.1', '4.0-trunk', '4.0.0']
    """
    match = _RELEASE.fullmatch(release)
    if match is None:
        reason = "not a release name; write a name like '3.8.0', '3.9.0-rc3' or '4.5.0-SNAPSHOT'"
        raise SpecError(reason, source=release)
    major, minor, patch, candidate, preview = match.groups()
    stage = _CANDIDATE if candidate else _PREVIEW if preview else _FINAL
    numbers = int(major), int(minor), int(patch or 0)
    return (*numbers, stage, int(candidate or 0), preview or "")


def is_preview(release: str) -> bool:
    """Return whether a release is not final: whether it is a release candidate or a snapshot.

    If the name of a release is not a number, it belongs to your own catalog and is final.

    >>> [is_preview(release) for release in ("4.5.0-SNAPSHOT", "4.5.0-rc1", "4.5.0", "mine")]
    [True, True, False, False]
    """
    try:
        return release_order(release)[_NUMBERS] != _FINAL
    except SpecError:
        return False


def is_since(release: str, first: str) -> bool:
    """Return whether a release is ``first`` or newer. A candidate counts as its release.

    If the name of a release is not a number, it belongs to your own catalog. Such a release counts
    as newer than any other release.

    >>> is_since("4.0.0-rc1", "4.0.0"), is_since("3.9.2", "4.0.0"), is_since("mine", "4.0.0")
    (True, False, True)
    """
    try:
        numbers = release_order(release)[:_NUMBERS]
    except SpecError:
        return True
    return numbers >= release_order(first)[:_NUMBERS]


def find_release(asked: str, releases: Sequence[str]) -> str:
    """Return the release to which a name refers. For example, "4.0" means the newest 4.0.

    ``releases`` are sorted, oldest first. Raises `UnknownMessageError`, which suggests the most
    similar release, if no release matches.

    >>> find_release("4.0", ["3.9.2", "4.0.0", "4.0.2", "4.1.2"])
    '4.0.2'
    >>> find_release("4.1.1", ["3.9.2", "4.0.0", "4.0.2", "4.1.2"])
    Traceback (most recent call last):
    flexwire.errors.UnknownMessageError: no release '4.1.1' in the catalog; the nearest is 4.1.2
    """
    if asked in releases:
        return asked
    if _BEGINNING.fullmatch(asked):
        meant = [release for release in releases if release.startswith(f"{asked}.")]
        if meant:
            return meant[-1]
    raise UnknownMessageError(
        f"no release {asked!r} in the catalog; {_nearest_release(asked, releases)}"
    )


def _nearest_release(asked: str, releases: Sequence[str]) -> str:
    try:
        order = release_order(asked if "." in asked else f"{asked}.0")
    except SpecError:
        return f"it has {', '.join(releases)}"
    near = [release for release in releases if release_order(release)[:2] == order[:2]]
    if not near:
        older = [each_release for each_release in releases if release_order(each_release) < order]
        newer = [release for release in releases if release_order(release) > order]
        near = older[-1:] + newer[:1]
    return f"the nearest {'are' if len(near) > 1 else 'is'} {' and '.join(near)}"


class Owner(Protocol):
    """The methods of a catalog that an entry uses."""

    @property
    def releases(self) -> tuple[str, ...]:
        """All releases in the catalog, oldest first."""

    def read(self, *path: str) -> str:
        """Return the text of one of the catalog's files."""

    def newest_release_of(self, module: str) -> str:
        """Return the newest release for which the catalog has specs of ``module``."""

    def release(self, asked: str) -> str:
        """Return the release to which a name refers."""


class CatalogEntry:
    """A message in the catalog, in all its releases.

    ``versions`` contains all versions that any release had. ``flexible_versions`` is the range in
    the newest spec, without an upper end. ``module`` is the module in the newest release, and
    ``former_modules`` are the modules in older releases.

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
        written = facts.get("headerVersions")
        self._header_versions = None if written is None else HeaderVersions.parse(written)
        # For each spec in the file: the first and last release that use it, and for which versions.
        self._serves: list[list[tuple[str, str, str]]] = facts["specs"]
        self._parsed: dict[int, MessageSpec] = {}
        self._whole: dict[tuple[tuple[Versions, int], ...], MessageSpec] = {}

    @cached_property
    def header_versions(self) -> HeaderVersions:
        """The header version of each version of a request or response, including later versions."""
        return header_versions(
            self.type, self.api_key, self.flexible_versions, self._header_versions
        )

    def __repr__(self) -> str:
        return f"CatalogEntry({self.name!r}, versions {self.versions})"

    @cached_property
    def _revisions(self) -> dict[str, list[tuple[Versions, int]]]:
        """For each release, oldest first: the version ranges, each with the number of its spec."""
        place = {release: number for number, release in enumerate(self._catalog.releases)}
        revisions: dict[int, list[tuple[Versions, int]]] = {}
        for number, runs in enumerate(self._serves):
            for first, last, text in runs:
                served = (Versions.parse(text), number)
                for release in range(place[first], place[last] + 1):
                    revisions.setdefault(release, []).append(served)
        return {
            self._catalog.releases[release]: revisions[release] for release in sorted(revisions)
        }

    @cached_property
    def releases(self) -> dict[str, Versions]:
        """The releases that have the message, oldest first, with the valid versions of each."""
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
        """The valid versions in the newest release of the module, or "none" if it was removed."""
        newest = self._catalog.newest_release_of(self.module)
        return self.releases.get(newest, Versions.NONE)

    @cached_property
    def _defaults(self) -> dict[int, int]:
        """The number of each version's spec in the newest release with that version."""
        newest: dict[int, int] = {}
        for served in self._revisions.values():
            newest |= {version: number for versions, number in served for version in versions}
        return newest

    @cached_property
    def _nodes(self) -> tuple[SpecText, list[Node]]:
        file = f"{self.name}.json"
        text = SpecText(self._catalog.read(self.module, file), file)
        node = text.read(whole=True)
        return text, node.items if isinstance(node, JsonArray) else [node]

    def _spec(self, number: int) -> MessageSpec:
        # Half of the specs belong to single releases and are rarely needed.
        if number not in self._parsed:
            text, nodes = self._nodes
            self._parsed[number] = parse_node(text, nodes[number], mode="strict")
        return self._parsed[number]

    def spec(self, version: int, release: str | None = None) -> MessageSpec:
        """Return the spec for the version, in ``release`` or in the newest release that has it.

        ``release`` is a name that `Catalog.release` accepts. A few versions changed their layout
        between releases, mostly while they were previews. Raises `UnknownMessageError` for a
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
        """Return the specs that a release uses, each with its versions."""
        ranges = self._revisions.get(release, ())
        return [(self._spec(number), versions) for versions, number in ranges]

    def whole_spec(self, release: str) -> MessageSpec:
        """Return one spec for all versions of a release, without the fields of other versions.

        If one of the release's specs has all versions, that spec is returned.

        Raises `SpecError` if there is no such spec. Kafka's own releases always have one.
        """
        valid, used = self.releases[release], tuple(self._revisions[release])
        # Releases that use the same specs for the same versions have the same whole spec.
        if used in self._whole:
            return self._whole[used]
        for spec in (*(spec for spec, _ in self.served(release)), *self.all_specs()):
            if valid <= spec.valid_versions and all(
                spec is served
                or resolve(spec, version).layout() == resolve(served, version).layout()
                for served, versions in self.served(release)
                for version in versions
            ):
                return self._whole.setdefault(used, narrowed(spec, valid))
        reason = f"no single spec of {self.name} has versions {valid}; specify the release's jars"
        raise SpecError(reason, source=f"release:{release}")

    def specs(self) -> tuple[tuple[MessageSpec, Versions], ...]:
        """Return every spec that is used by default, with its versions, the newest first.

        A spec whose versions form several ranges is listed once for each range.
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
        """Return every spec in the message's file, newest first, including old releases' specs."""
        return tuple(map(self._spec, range(len(self._serves))))

    def _missing(self, version: int, release: str) -> str:
        if release in self.releases:
            return (
                f"{self.name} has no version {version} in {release}; "
                f"the valid versions are {self.releases[release]}"
            )
        return f"{self.name} is not in {release}; it is in {', '.join(self.releases)}"


INDEX = "index.json"
VARIABLE = "FLEXWIRE_CATALOG"
"""The environment variable that contains the directory of your own catalog."""


class _Cached(Protocol):
    def cache_clear(self) -> None: ...


_C = TypeVar("_C", bound=_Cached)
PackedCatalog = tuple[str, bytes]
_ACTIVE: list[Catalog] = []
_FORGET: list[Callable[[], object]] = []


def catalog() -> Catalog:
    """Return the catalog of this process.

    Raises `SpecError` if ``FLEXWIRE_CATALOG`` is a directory without a catalog.

    >>> catalog().entry("ApiVersionsRequest").api_key
    18
    >>> catalog().entry("FetchRequst")
    Traceback (most recent call last):
    flexwire.errors.UnknownMessageError: no message 'FetchRequst'; did you mean FetchRequest?
    """
    if not _ACTIVE:
        own = os.environ.get(VARIABLE)
        _ACTIVE.append(Catalog(Path(own)) if own else bundled_catalog())
    return _ACTIVE[0]


def use_catalog(root: Path | str | None) -> Catalog:
    """Use the catalog in ``root`` in this process, or the bundled catalog if ``root`` is None.

    Existing classes keep their messages. If ``root`` contains no catalog, this raises `SpecError`
    and changes nothing.
    """
    if root is None:
        return _activate(bundled_catalog())
    if not isinstance(root, str | Path) or "\0" in str(root):
        raise refuse("root", "the path of a directory, or None", root)
    return _activate(Catalog(Path(root)))


def _activate(active: Catalog) -> Catalog:
    _ACTIVE[:] = [active]
    for forget in _FORGET:
        forget()
    return active


def use_packed_catalog(packed: PackedCatalog | None) -> None:
    """Use the catalog of another process (`Catalog.packed`) in this process too."""
    if _ACTIVE and _ACTIVE[0].packed == packed:
        return
    if packed is None:
        use_catalog(None)
        return
    place, archive_bytes = packed
    # This import takes 10 ms, and most processes use the bundled catalog.
    import zipfile  # noqa: PLC0415 - the module is seldom needed

    archive = zipfile.ZipFile(io.BytesIO(archive_bytes))
    archive.filename = place
    _activate(Catalog(zipfile.Path(archive), packed=packed))


@contextmanager
def using_packed_catalog(packed: PackedCatalog | None) -> Iterator[None]:
    """Use a packed catalog until the end of the block."""
    before = catalog().packed
    use_packed_catalog(packed)
    try:
        yield
    finally:
        use_packed_catalog(before)


def per_catalog(cached: _C) -> _C:
    """Empty the cache of a function whenever `use_catalog` changes the catalog."""
    _FORGET.append(cached.cache_clear)
    return cached


def on_change(forget: Callable[[], object]) -> None:
    """Make `use_catalog` call ``forget``. ``forget`` drops values that depend on the catalog."""
    _FORGET.append(forget)


def bundled_catalog() -> Catalog:
    """Return the catalog in the package, which may be in a zip file."""
    beside = Path(__file__).with_name("bundled")
    if beside.is_dir():
        return Catalog(beside, bundled=True)
    # This import takes 5 ms, as long as reading the index.
    from importlib.resources import files  # noqa: PLC0415 - the module is seldom needed

    return Catalog(files("flexwire.schema") / "bundled", bundled=True)


class Catalog:
    """The messages in a directory that `import_specs` has written.

    ``bundled`` is true for the catalog in the package. ``packed`` is a catalog that another process
    sent. ``releases`` lists all releases of the catalog, oldest first, and ``final_releases`` lists
    those that are not previews. Raises `SpecError` if there is no catalog.
    """

    def __init__(
        self,
        root: Path | Traversable,
        *,
        bundled: bool = False,
        packed: PackedCatalog | None = None,
    ) -> None:
        # If the path is in a zip file, only `read` can open it.
        self.root = Path(str(root))
        self._files = root
        # The directory of your own catalog, here or in the process that sent it, or None.
        self.place = None if bundled else packed[0] if packed else str(root)
        self._packed = packed
        try:
            index = json.loads(self.read(INDEX))
            self.release_modules: dict[str, tuple[str, ...]] = {
                release: tuple(modules) for release, modules in index["releases"].items()
            }
            self._messages: dict[str, dict[str, Any]] = index["messages"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            why = (isinstance(error, OSError) and error.strerror) or repr(error)
            named = f", from {VARIABLE}" if str(root) == os.environ.get(VARIABLE) else ""
            reason = f"no spec catalog ({why}){named}; create one with 'flexwire schema import'"
            raise SpecError(reason, source=str(self.root / INDEX)) from None
        self.releases = tuple(self.release_modules)
        self.final_releases = tuple(name for name in self.releases if not is_preview(name))
        self._entries: dict[str, CatalogEntry] = {}

    def read(self, *path: str) -> str:
        """Return the text of one of the catalog's files."""
        return self._files.joinpath(*path).read_text(encoding="utf-8")

    @property
    def packed(self) -> PackedCatalog | None:
        """The path of the catalog, and its files as a zip file, for `use_packed_catalog`.

        Another process can use this value. The value is None for the bundled catalog, which all
        processes have.
        """
        if self._packed is None and self.place is not None:
            self._packed = (self.place, self._pack())
        return self._packed

    @cached_property
    def digest(self) -> str:
        """A digest of the files in your own catalog, in hex, or "" for the bundled catalog."""
        return "" if self.packed is None else hashlib.sha256(self.packed[1]).hexdigest()

    def _pack(self) -> bytes:
        import zipfile  # noqa: PLC0415 - the module is seldom needed, as in `use_packed_catalog`

        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            names = [INDEX, *(f"{self.entry(name).module}/{name}.json" for name in self.names())]
            for name in names:
                # With this time, the earliest that a zip file allows, equal files have equal bytes.
                archive.writestr(
                    zipfile.ZipInfo(name), self.read(*name.split("/")), zipfile.ZIP_DEFLATED
                )
        return buffer.getvalue()

    @property
    def newest_release(self) -> str:
        """The newest release. This release may lack some modules."""
        return self.releases[-1]

    def newest_release_of(self, module: str) -> str:
        """Return the newest release for which the catalog has specs of ``module``."""
        for release in reversed(self.releases):
            if module in self.release_modules[release]:
                return release
        raise UnknownMessageError(f"no release contains module {module!r}")

    def release(self, asked: str) -> str:
        """Return the release to which a name refers. For example, "4.0" means the newest 4.0.

        Raises `UnknownMessageError`, which suggests the nearest release, if no release matches.

        >>> catalog().release("4.0")
        '4.0.2'
        """
        return find_release(asked, self.releases)

    def final_release(self, asked: str) -> str:
        """Return the final release to which a name refers, as `release` does.

        Raises `ArgumentError` for a preview. A preview may still change, so no verdict can use it.
        """
        release = self.release(asked)
        if is_preview(release):
            raise ArgumentError(
                f"release: expected a final release, got {release}, which is a preview and can "
                "still change"
            )
        return release

    def names(self) -> tuple[str, ...]:
        """Return the names of all messages, in alphabetical order."""
        return tuple(self._messages)

    def entry(self, name: str) -> CatalogEntry:
        """Return the entry of a message. Raises `UnknownMessageError` with the nearest names."""
        if name not in self._entries:
            if name not in self._messages:
                reason = f"no message {name!r}{self._where()}; {_nearest(name, self.names())}"
                raise UnknownMessageError(reason)
            self._entries[name] = CatalogEntry(self, name, self._messages[name])
        return self._entries[name]

    @cached_property
    def _by_api_key(self) -> dict[tuple[int, MessageType], tuple[CatalogEntry, ...]]:
        """Requests and responses by api key, with the newest name first."""
        entries_by_key: dict[tuple[int, MessageType], list[CatalogEntry]] = {}
        for name, facts in self._messages.items():
            if facts["type"] in ("request", "response"):
                key = (facts["apiKey"], MessageType(facts["type"]))
                entries_by_key.setdefault(key, []).append(self.entry(name))
        order = self.releases.index
        for entries in entries_by_key.values():
            entries.sort(key=lambda entry: order(entry.last_release), reverse=True)
        return {key: tuple(entries) for key, entries in entries_by_key.items()}

    def by_api_key(
        self,
        api_key: int,
        type: MessageType,  # noqa: A002 - `type` is the word in specs
        version: int | None = None,
    ) -> CatalogEntry:
        """Return the request or response with an api key, under its newest name.

        With ``version``, the newest name that has this version is used.

        >>> catalog().by_api_key(2, MessageType.REQUEST).name
        'ListOffsetsRequest'
        """
        entries = self._by_api_key.get((api_key, type), ())
        if not entries:
            raise UnknownMessageError(f"no {type.value} has api key {api_key}")
        if version is None:
            return entries[0]
        for entry in entries:
            if version in entry.versions:
                return entry
        newest = entries[0]
        raise UnknownMessageError(
            f"{newest.name} has no version {version}; released are {newest.versions}"
        )

    def _where(self) -> str:
        return f" in the catalog {self.place}" if self.place else ""

    def api_keys(self) -> tuple[int, ...]:
        """Return the api keys of all requests, in ascending order."""
        keys = (key for key, type_ in self._by_api_key if type_ is MessageType.REQUEST)
        return tuple(sorted(keys))


def _nearest(word: str, words: Sequence[str]) -> str:
    lowered = {name.lower(): name for name in words}
    begun = [name for name in lowered if word and name.startswith(word.lower())][:3]
    close = begun or get_close_matches(word.lower(), lowered, n=3, cutoff=0.8)
    suggestions = [lowered[name] for name in close] or _of_stem(word, words)
    if suggestions:
        return f"did you mean {' or '.join(suggestions)}?"
    if len(words) <= 20:  # noqa: PLR2004 - a reader can scan 20 names at a glance
        return f"there are {', '.join(words)}"
    return "see 'flexwire schema list'"


def _of_stem(word: str, words: Sequence[str]) -> list[str]:
    """Return the request and response of the API whose name is most similar to a word."""
    stems = {name: name.removesuffix("Request").removesuffix("Response").lower() for name in words}
    near = get_close_matches(word.lower(), stems.values(), n=1, cutoff=0.75)
    return [name for name, stem in stems.items() if stem in near]
