"""The messages of the guide, version by version, and the releases that support each version."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

from flexwire.errors import SpecError
from flexwire.schema.catalog import catalog
from flexwire.schema.editions import Edition
from flexwire.schema.header_versions import header_version, spec_header_versions
from flexwire.schema.merge import merge
from flexwire.schema.pairs import same_bytes
from flexwire.schema.resolve import resolve
from flexwire.specs.guide.rows import CharacterBudget, FieldRow, RowStep, make_rows, steps
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from flexwire.schema.catalog import Catalog, CatalogEntry
    from flexwire.schema.spec import MessageSpec, MessageType

# Every version is compared with every other one. Kafka's highest version, after 14 years, is 19.
MOST_VERSIONS = 100


@dataclass(frozen=True, slots=True)
class Layout:
    """A version's unusual layout in some releases: the fields, and the steps to the usual fields.

    ``renamed`` is true if only names differ and the bytes are the same.
    """

    releases: tuple[str, ...]
    renamed: bool
    flexible: bool
    rows: tuple[FieldRow, ...]
    steps: tuple[RowStep, ...]


@dataclass(frozen=True, slots=True)
class Support:
    """The releases that have a version, oldest first, in runs of consecutive releases.

    ``otherwise`` lists releases in which the version with this number has a different layout or
    different names. If no release has this version or a higher version, ``after`` is the newest
    release with the message: a later release will introduce the version. Otherwise ``after`` is
    empty.
    """

    runs: tuple[tuple[str, ...], ...]
    otherwise: tuple[Layout, ...] = ()
    after: str = ""

    @property
    def releases(self) -> tuple[str, ...]:
        """All releases in these runs."""
        return tuple(release for run in self.runs for release in run)

    @property
    def latest(self) -> str:
        """The latest of these releases, or a phrase about the expected first release."""
        if self.runs:
            return self.runs[-1][-1]
        return f"none yet: expected after {self.after}" if self.after else "none known"


@dataclass(frozen=True, slots=True)
class MessageVersion:
    """One version of a message.

    ``header`` is the version of its header, or None if the message has no header.
    """

    number: int
    flexible: bool
    header: int | None
    rows: tuple[FieldRow, ...]
    support: Support
    marks: tuple[str, ...]


@dataclass(frozen=True)
class GuideMessage:
    """A message with all its versions, lowest first. ``group`` is the heading in the index."""

    name: str
    type: MessageType
    api_key: int | None
    group: str
    listeners: tuple[str, ...]
    versions: tuple[MessageVersion, ...]

    @property
    def is_api(self) -> bool:
        """True if the message is a request or a response."""
        return self.type.is_api

    @property
    def title(self) -> str:
        """The title of the page. For requests and responses, the title is the name of the API."""
        return self.type.api_name(self.name)

    @cached_property
    def by_number(self) -> dict[int, MessageVersion]:
        """The versions, by number."""
        return {version.number: version for version in self.versions}

    @cached_property
    def paths(self) -> dict[int, frozenset[str]]:
        """The paths of the fields of each version."""
        return {
            version.number: frozenset(row.path for row in version.rows) for version in self.versions
        }

    def has(self, number: int, path: str) -> bool:
        """Return whether a version contains the field."""
        return path in self.paths[number]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the message's versions."""
        return tuple(version.number for version in self.versions)

    @property
    def current(self) -> tuple[int, ...]:
        """The numbers of the versions that no release has removed."""
        return tuple(version.number for version in self.versions if "removed" not in version.marks)

    @property
    def flexible_from(self) -> int | None:
        """The lowest flexible version."""
        return next((version.number for version in self.versions if version.flexible), None)


def bundled_messages(bundled: Catalog) -> list[GuideMessage]:
    """Return every message of the catalog, with the newest layout of each version."""
    messages = []
    for entry in map(bundled.entry, bundled.names()):
        by_version = {number: entry.spec(number) for number in entry.versions}
        edition = Edition(entry.all_specs()[0], by_version)
        laid = _EditionLayout(edition, tuple(by_version))
        supports = {number: _catalog_support(bundled, entry, laid, number) for number in by_version}
        current = entry.current_versions
        removed = {number for number in by_version if number not in current}
        messages.append(laid.message(entry.module, supports, removed))
    return messages


def own_messages(editions: Mapping[str, Edition]) -> list[GuideMessage]:
    """Return the messages of your own specs. Messages without versions are left out.

    A release in the catalog supports a version if the release's version with the same number has
    the same layout. The message must be the request or response with the same api key, or have the
    same name. Raises `SpecError` for a spec that cannot be laid out, and for a spec that is too
    large for a guide.
    """
    messages = []
    for edition in editions.values():
        if not edition.spec.valid_versions:
            continue
        laid = _EditionLayout(edition, _numbers(edition.spec))
        entries = list(_entries_named(edition.spec))
        supports = {number: _own_support(entries, laid, number) for number in laid.numbers}
        messages.append(laid.message(edition.spec.type.value, supports, set()))
    return messages


def _numbers(spec: MessageSpec) -> tuple[int, ...]:
    if len(spec.valid_versions) > MOST_VERSIONS:
        reason = (
            f"the message has more than {MOST_VERSIONS} versions, the limit for a guide, which "
            "compares all pairs of versions"
        )
        raise SpecError(reason, source=spec.source or spec.name)
    return tuple(spec.valid_versions)


class _EditionLayout:
    """An edition with the schemas and the rows of all its versions."""

    def __init__(self, edition: Edition, numbers: Sequence[int]) -> None:
        self.edition = edition
        self.numbers = numbers
        self.room = CharacterBudget(edition.spec.source or edition.spec.name)
        self.schemas = {number: resolve(edition.at(number), number) for number in numbers}
        served = [(spec, Versions(run[0], run[-1])) for spec, run in _runs(numbers, edition.at)]
        # The newest spec comes first, because its descriptions are used.
        self.present = {
            (structure, attribute): field.present_in()
            for structure, fields in merge(served[::-1]).items()
            for attribute, field in fields.items()
        }
        self.rows = {
            number: make_rows(edition.at(number), schema, self.present, self.room)
            for number, schema in self.schemas.items()
        }

    def message(
        self, group: str, supports: Mapping[int, Support], removed: set[int]
    ) -> GuideMessage:
        spec = self.edition.spec
        return GuideMessage(
            name=spec.name,
            type=spec.type,
            api_key=spec.api_key,
            group=group,
            listeners=spec.listeners,
            versions=tuple(
                MessageVersion(
                    number=number,
                    flexible=schema.flexible,
                    header=_header(spec, number, flexible=schema.flexible),
                    rows=self.rows[number],
                    support=supports[number],
                    marks=tuple(_marks(spec, number, removed)),
                )
                for number, schema in self.schemas.items()
            ),
        )

    def layout(self, spec: MessageSpec, number: int, releases: Sequence[str]) -> Layout:
        """Return the layout of a version in the spec of other releases."""
        present = {
            (structure, field.attribute): ""
            for structure, fields in spec.fields_by_structure().items()
            for field in fields
        }
        schema = resolve(spec, number)
        rows = make_rows(spec, schema, present, self.room)
        renamed = same_bytes(schema, self.schemas[number])
        way = tuple(steps(rows, self.rows[number]))
        return Layout(tuple(releases), renamed, schema.flexible, rows, way)


def _runs(
    numbers: Sequence[int], spec_of: Callable[[int], MessageSpec]
) -> Iterator[tuple[MessageSpec, list[int]]]:
    """Yield the runs of consecutive versions whose layouts come from the same spec."""
    for _, run in groupby(
        enumerate(numbers), lambda item: (id(spec_of(item[1])), item[1] - item[0])
    ):
        versions = [number for _, number in run]
        yield spec_of(versions[0]), versions


def _marks(spec: MessageSpec, number: int, removed: set[int]) -> Iterator[str]:
    if number in removed:
        yield "removed"
    if number in spec.deprecated_versions:
        yield "deprecated"
    if spec.latest_version_unstable and number == spec.valid_versions.highest:
        yield "unstable"


def _header(spec: MessageSpec, number: int, *, flexible: bool) -> int | None:
    """Return the header version of a request or response, with Kafka's exceptions."""
    if not spec.type.is_api or spec.api_key is None:
        return None
    header = spec_header_versions(spec).of(number)
    return header_version(spec.type, spec.api_key, header, flexible=flexible)


def _catalog_support(
    bundled: Catalog, entry: CatalogEntry, laid: _EditionLayout, number: int
) -> Support:
    default = laid.edition.at(number)
    otherwise = [
        laid.layout(spec, number, releases)
        for spec, releases in _specs_of(entry, number)
        if spec is not default
    ]
    modules = {entry.module, *entry.former_modules}
    having = set(_releases_of(entry, number))
    return Support(_in_a_row(_releases_with(bundled, modules), having), tuple(otherwise))


def _specs_of(entry: CatalogEntry, number: int) -> list[tuple[MessageSpec, list[str]]]:
    """Return the specs that contain a version in some release, each with these releases."""
    specs: dict[int, tuple[MessageSpec, list[str]]] = {}
    for release in _releases_of(entry, number):
        spec = entry.spec(number, release)
        specs.setdefault(id(spec), (spec, []))[1].append(release)
    return list(specs.values())


def _releases_with(bundled: Catalog, modules: set[str]) -> list[str]:
    """Return the releases for which the catalog has specs of one of the modules."""
    return [
        release for release in bundled.releases if modules & set(bundled.release_modules[release])
    ]


def _releases_of(entry: CatalogEntry, number: int) -> list[str]:
    return [release for release, valid in entry.releases.items() if number in valid]


def _in_a_row(releases: Sequence[str], having: set[str]) -> tuple[tuple[str, ...], ...]:
    """Return the releases in ``having`` as runs of consecutive releases."""
    runs = groupby(releases, having.__contains__)
    return tuple(tuple(run) for has, run in runs if has)


def _entries_named(spec: MessageSpec) -> Iterator[CatalogEntry]:
    """Yield the catalog's entries for the api key of a request or response, or for the name."""
    for entry in map(catalog().entry, catalog().names()):
        if spec.type.is_api:
            same = entry.type is spec.type and entry.api_key == spec.api_key
        else:
            # The type may have changed, because the keys of internal topics had the type data up to
            # 4.0.
            same = not entry.type.is_api and entry.name == spec.name
        if same:
            yield entry


def _own_support(entries: Sequence[CatalogEntry], laid: _EditionLayout, number: int) -> Support:
    having: set[str] = set()
    otherwise = []
    for entry in entries:
        for spec, releases in _specs_of(entry, number):
            if same_bytes(resolve(spec, number), laid.schemas[number]):
                having.update(releases)
            else:
                otherwise.append(laid.layout(spec, number, releases))
    modules = {module for entry in entries for module in (entry.module, *entry.former_modules)}
    runs = _in_a_row(_releases_with(catalog(), modules), having)
    return Support(runs, tuple(otherwise), _newest_before(entries, number))


def _newest_before(entries: Sequence[CatalogEntry], number: int) -> str:
    """Return the newest release if it contains only lower versions of these messages.

    The result is empty if some release has the version.
    """
    newest = catalog().newest_release
    has_lower = any(number > max(entry.versions) for entry in entries if newest in entry.releases)
    is_new = all(number not in entry.versions for entry in entries)
    return newest if has_lower and is_new else ""
