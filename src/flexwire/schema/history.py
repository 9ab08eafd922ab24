"""The history of one message in Kafka's releases: the specs that the catalog needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flexwire.errors import SpecError
from flexwire.schema.catalog import is_preview
from flexwire.schema.header_versions import header_versions, spec_header_versions
from flexwire.schema.pairs import same_bytes
from flexwire.schema.resolve import resolve
from flexwire.schema.spec import HeaderVersions
from flexwire.schema.write import write_spec
from flexwire.versions import HIGHEST, Versions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from flexwire.schema.spec import MessageSpec
    from flexwire.wire.schema import Schema


@dataclass(slots=True)
class CatalogSpec:
    """A spec in the catalog, and the versions for which each release uses it."""

    spec: MessageSpec
    text: str
    serves: dict[str, list[int]] = field(default_factory=dict)
    _schemas: dict[int, tuple[object, Schema]] = field(default_factory=dict)

    @property
    def is_of_previews(self) -> bool:
        """True if only previews have used the spec so far."""
        return all(map(is_preview, self.serves))

    def laid_out(self, version: int) -> tuple[object, Schema]:
        """Return the layout of a version together with its header version, and its schema.

        The layout includes the names of fields.
        """
        if version not in self._schemas:
            schema = resolve(self.spec, version)
            header = spec_header_versions(self.spec).of(version) if self.spec.type.is_api else None
            self._schemas[version] = ((schema.layout(), header), schema)
        return self._schemas[version]


class History:
    """The history of a message. Releases are added from the newest to the oldest.

    If releases differ in the layout or the field names of a version, the specs of all of them are
    kept. Defaults, ``ignorable``, ``mapKey``, ``listeners`` and similar facts come from the newest
    spec that is kept. A preview does not change other releases: its spec is used for a final
    release only if the two specs are the same.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.modules: list[str] = []
        self.kept: list[CatalogSpec] = []
        # The default spec for each version: the one in the newest release that has the version.
        self._defaults: dict[int, CatalogSpec] = {}
        # For each version: every layout, with a schema for it and the releases that use it.
        self._layouts: dict[int, dict[object, tuple[Schema, set[str]]]] = {}

    @property
    def versions(self) -> list[int]:
        """Every version that any release had."""
        return sorted(self._defaults)

    def add(self, release: str, module: str, spec: MessageSpec) -> None:
        """Add the spec of the next older release.

        The spec must have valid versions, and a highest valid version.
        """
        if spec.valid_versions.open_ended:
            reason = f"validVersions {spec.valid_versions} has no end; write the highest version"
            raise SpecError(reason, source=spec.source)
        self.add_served(release, (module,), [(spec, spec.valid_versions)])

    def add_served(
        self,
        release: str,
        modules: Iterable[str],
        served: Sequence[tuple[MessageSpec, Versions]],
    ) -> None:
        """Add the next older release, given as its specs, each with the versions that use it."""
        if any(release in spec_in_catalog.serves for spec_in_catalog in self.kept):
            raise SpecError(f"{self.name} appears twice in {release}", source=served[0][0].source)
        self.modules += [module for module in modules if module not in self.modules]
        previews = is_preview(release)
        for spec, versions in served:
            new = self._same(spec)
            for version in versions:
                layout, schema = new.laid_out(version)
                serving = self._serving(version, layout, previews=previews) or new
                if serving not in self.kept:
                    self.kept.append(serving)
                serving.serves.setdefault(release, []).append(version)
                layouts = self._layouts.setdefault(version, {})
                layouts.setdefault(layout, (schema, set()))[1].add(release)
                self._defaults.setdefault(version, serving)

    def _same(self, spec: MessageSpec) -> CatalogSpec:
        text = write_spec(spec)
        return next((same for same in self.kept if same.text == text), CatalogSpec(spec, text))

    def _serving(self, version: int, layout: object, *, previews: bool) -> CatalogSpec | None:
        """Return the newest kept spec in which the version has this layout.

        A spec that only previews use is considered only if ``previews`` is true.
        """
        for candidate in self.kept:
            if (
                (previews or not candidate.is_of_previews)
                and version in candidate.spec.valid_versions
                and candidate.laid_out(version)[0] == layout
            ):
                return candidate
        return None

    def changed(self, read: Collection[str]) -> Iterator[int]:
        """Yield the versions with several layouts, one of which only releases in ``read`` have."""
        for version in self.versions:
            layouts = self._by_bytes(version)
            if len(layouts) > 1 and _only(read, layouts):
                yield version

    def renamed(self, read: Collection[str]) -> Iterator[int]:
        """Yield the versions with field names that only the releases in ``read`` have.

        The bytes of these versions are the same in all releases.
        """
        for version in self.versions:
            names = [having for _, having in self._layouts[version].values()]
            if len(names) > 1 and len(self._by_bytes(version)) == 1 and _only(read, names):
                yield version

    def _by_bytes(self, version: int) -> list[set[str]]:
        """Return groups of releases in which a version has the same byte layout."""
        layouts: list[tuple[Schema, set[str]]] = []
        for schema, having in self._layouts[version].values():
            for other, releases in layouts:
                if same_bytes(schema, other):
                    releases.update(having)
                    break
            else:
                layouts.append((schema, set(having)))
        return [releases for _, releases in layouts]

    def facts(self, releases: Sequence[str]) -> dict[str, object]:
        """Return the message's entry in the catalog's index. ``releases`` are sorted by age."""
        newest = self.kept[0].spec
        for version, serving in self._defaults.items():
            if (version in serving.spec.flexible_versions) != (version in newest.flexible_versions):
                reason = f"{self.name} v{version}: the specs disagree on whether it is flexible"
                raise SpecError(reason, source=serving.spec.source)
        facts: dict[str, object] = {"module": self.modules[0]}
        if self.modules[1:]:
            facts["formerModules"] = self.modules[1:]
        facts["type"] = newest.type.value
        if newest.api_key is not None:
            facts["apiKey"] = newest.api_key
        facts["versions"] = str(Versions.of(self.versions))
        facts["flexibleVersions"] = str(newest.flexible_versions)
        if newest.type.is_api and (headers := self._headers(newest)) is not None:
            facts["headerVersions"] = headers.texts()
        facts["specs"] = [_runs(serving.serves, releases) for serving in self.kept]
        return facts

    def _headers(self, newest: MessageSpec) -> HeaderVersions | None:
        """Return the header versions that do not follow from the flexible versions.

        For each version, the header version comes from the spec that is used for it by default. For
        a version that is in no release, it follows from the newest spec.
        """
        derived = header_versions(newest.type, newest.api_key, newest.flexible_versions)
        highest = self.versions[-1] + 1
        newest_headers = spec_header_versions(newest)
        ranges: list[tuple[Versions, int]] = []
        differs = False
        for version in range(highest + 1):
            kept = self._defaults.get(version)
            headers = newest_headers if kept is None else spec_header_versions(kept.spec)
            header = headers.of(version)
            differs |= header != derived.of(version)
            if ranges and ranges[-1][1] == header:
                ranges[-1] = (Versions(ranges[-1][0].lowest, version), header)
            else:
                ranges.append((Versions(version, version), header))
        if not differs:
            return None
        ranges[-1] = (Versions(ranges[-1][0].lowest, HIGHEST), ranges[-1][1])
        return HeaderVersions(tuple(ranges))


def _only(read: Collection[str], layouts: Iterable[set[str]]) -> bool:
    """Return whether any layout is used only by releases in ``read``."""
    return any(having <= set(read) for having in layouts)


def _runs(serves: dict[str, list[int]], releases: Sequence[str]) -> list[tuple[str, str, str]]:
    """Combine neighboring releases that have the same versions, as (first, last, versions)."""
    runs: list[tuple[str, str, str]] = []
    open_runs: dict[Versions, tuple[str, str]] = {}
    for release in releases:
        ranges = _ranges(serves.get(release, ()))
        ended = [versions for versions in open_runs if versions not in ranges]
        runs += [(*open_runs.pop(versions), str(versions)) for versions in ended]
        for versions in ranges:
            first, _ = open_runs.get(versions, (release, release))
            open_runs[versions] = (first, release)
    runs += [(*places, str(versions)) for versions, places in open_runs.items()]
    return sorted(runs, key=lambda run: (releases.index(run[0]), run[2]), reverse=True)


def _ranges(versions: Iterable[int]) -> list[Versions]:
    ranges: list[Versions] = []
    for version in sorted(versions):
        if ranges and ranges[-1].highest + 1 == version:
            ranges[-1] = Versions(ranges[-1].lowest, version)
        else:
            ranges.append(Versions(version, version))
    return ranges
