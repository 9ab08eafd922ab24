"""The catalog of message specs: every message of every final Kafka release, or one of one's own.

`index.json` says which messages there are, in which releases, and which of a message's specs holds
for which versions. A message's own file holds its specs as KIP-482 JSON, newest first; it is read
when it is asked for. A process has one catalog: the one that ships in the package, that of
``FLEXWIRE_CATALOG``, or that of `use_catalog`.
"""

from __future__ import annotations

import io
import json
import os
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from flexwire.arguments import refuse
from flexwire.errors import SpecError, UnknownMessageError
from flexwire.schema.entry import Entry
from flexwire.schema.releases import find_release
from flexwire.schema.spec import MessageType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from importlib.resources.abc import Traversable

INDEX = "index.json"
VARIABLE = "FLEXWIRE_CATALOG"
"""The environment variable that names the directory of a catalog of one's own."""


class _Cached(Protocol):
    def cache_clear(self) -> None: ...


_C = TypeVar("_C", bound=_Cached)
Carried = tuple[str, bytes]
_ACTIVE: list[Catalog] = []
_FORGET: list[Callable[[], object]] = []


def catalog() -> Catalog:
    """The catalog of this process.

    Raises `SpecError` where ``FLEXWIRE_CATALOG`` names a directory without one.

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
    """Make the catalog in ``root``, or the bundled one, that of this process from now on.

    Classes that were given out before keep the messages they have. Raises `SpecError`, and changes
    nothing, where there is no catalog.
    """
    if root is None:
        return _activate(bundled_catalog())
    if not isinstance(root, str | Path) or "\0" in str(root):
        raise refuse("root", "the path of a directory, or None", root)
    return _activate(Catalog(Path(root)))


def _activate(wanted: Catalog) -> Catalog:
    _ACTIVE[:] = [wanted]
    for forget in _FORGET:
        forget()
    return wanted


def use_carried(carried: Carried | None) -> None:
    """Make the catalog that another process uses (`Catalog.carried`) that of this one too."""
    if _ACTIVE and _ACTIVE[0].carried == carried:
        return
    if carried is None:
        use_catalog(None)
        return
    place, packed = carried
    # Importing this takes 10 ms, and most processes have the bundled catalog.
    import zipfile  # noqa: PLC0415 - see above

    archive = zipfile.ZipFile(io.BytesIO(packed))
    archive.filename = place
    _activate(Catalog(zipfile.Path(archive), carried=carried))


@contextmanager
def using_carried(carried: Carried | None) -> Iterator[None]:
    """Make it that of this process for a while."""
    before = catalog().carried
    use_carried(carried)
    try:
        yield
    finally:
        use_carried(before)


def per_catalog(cached: _C) -> _C:
    """Let `use_catalog` empty the cache of a function whose answers the catalog decides."""
    _FORGET.append(cached.cache_clear)
    return cached


def on_change(forget: Callable[[], object]) -> None:
    """Have `use_catalog` call ``forget``, which drops what was made of the catalog before."""
    _FORGET.append(forget)


def bundled_catalog() -> Catalog:
    """The catalog that ships in the package, which may lie in a zip."""
    beside = Path(__file__).with_name("bundled")
    if beside.is_dir():
        return Catalog(beside, bundled=True)
    # Importing this takes 5 ms, as long as the index.
    from importlib.resources import files  # noqa: PLC0415 - see above

    return Catalog(files("flexwire.schema") / "bundled", bundled=True)


class Catalog:
    """The messages of a directory that `import_specs` wrote.

    ``bundled`` is the one that ships in the package, ``carried`` is of one from another process.
    Raises `SpecError` where there is none.
    """

    def __init__(
        self,
        root: Path | Traversable,
        *,
        bundled: bool = False,
        carried: Carried | None = None,
    ) -> None:
        # In a zip it is a path that only `read` can follow.
        self.root = Path(str(root))
        self._files = root
        # Where a catalog of one's own lies, or lay before it was carried here; what ships in the
        # package has no place.
        self.place = None if bundled else carried[0] if carried else str(root)
        self._carried = carried
        try:
            index = json.loads(self.read(INDEX))
            self.release_modules: dict[str, tuple[str, ...]] = {
                release: tuple(modules) for release, modules in index["releases"].items()
            }
            self._messages: dict[str, dict[str, Any]] = index["messages"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            why = (isinstance(error, OSError) and error.strerror) or repr(error)
            named = f"; {VARIABLE} names it" if str(root) == os.environ.get(VARIABLE) else ""
            reason = f"no catalog of specs ({why}){named}; write one with 'flexwire schema import'"
            raise SpecError(reason, source=str(self.root / INDEX)) from None
        self.releases = tuple(self.release_modules)
        self._entries: dict[str, Entry] = {}

    def read(self, *path: str) -> str:
        """The text of one of the catalog's files."""
        return self._files.joinpath(*path).read_text(encoding="utf-8")

    @property
    def carried(self) -> Carried | None:
        """What `use_carried` needs in another process: where it lies, and its files in a zip.

        None for the catalog that ships in the package, which is there already.
        """
        if self._carried is None and self.place is not None:
            self._carried = (self.place, self._packed())
        return self._carried

    def _packed(self) -> bytes:
        import zipfile  # noqa: PLC0415 - as in `use_carried`

        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
            names = [INDEX, *(f"{self.entry(name).module}/{name}.json" for name in self.names())]
            for name in names:
                # The time of the archive's beginning, so that the same files give the same bytes.
                packed.writestr(
                    zipfile.ZipInfo(name), self.read(*name.split("/")), zipfile.ZIP_DEFLATED
                )
        return buffer.getvalue()

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

    def release(self, asked: str) -> str:
        """The release that a person means: "4.0" is the newest 4.0 in the catalog.

        Raises `UnknownMessageError` for one that is not there, with the nearest.

        >>> catalog().release("4.0")
        '4.0.2'
        """
        return find_release(asked, self.releases)

    def names(self) -> tuple[str, ...]:
        """Every message's name, in alphabetical order."""
        return tuple(self._messages)

    def entry(self, name: str) -> Entry:
        """What the catalog knows of a message; `UnknownMessageError` suggests the nearest names."""
        if name not in self._entries:
            if name not in self._messages:
                reason = f"no message {name!r}{self._where()}; {_nearest(name, self.names())}"
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
            if version in entry.versions:
                return entry
        newest = entries[0]
        raise UnknownMessageError(
            f"{newest.name} has no version {version}; released are {newest.versions}"
        )

    def _where(self) -> str:
        return f" in the catalog {self.place}" if self.place else ""

    def api_keys(self) -> tuple[int, ...]:
        """Every api key of a request, in ascending order."""
        keys = (key for key, type_ in self._by_api_key if type_ is MessageType.REQUEST)
        return tuple(sorted(keys))


def _nearest(word: str, words: Sequence[str]) -> str:
    lowered = {one.lower(): one for one in words}
    begun = [one for one in lowered if word and one.startswith(word.lower())][:3]
    close = begun or get_close_matches(word.lower(), lowered, n=3, cutoff=0.8)
    found = [lowered[one] for one in close] or _of_stem(word, words)
    if found:
        return f"did you mean {' or '.join(found)}?"
    if len(words) <= 20:  # noqa: PLR2004 - what a person reads in a glance
        return f"there are {', '.join(words)}"
    return "see 'flexwire schema list'"


def _of_stem(word: str, words: Sequence[str]) -> list[str]:
    """The request and the response of the API that is nearest to a word."""
    stems = {one: one.removesuffix("Request").removesuffix("Response").lower() for one in words}
    near = get_close_matches(word.lower(), stems.values(), n=1, cutoff=0.75)
    return [one for one, stem in stems.items() if stem in near]
