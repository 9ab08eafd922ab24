"""One message through Kafka's releases: which of its specs are needed, and where."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flexwire.errors import SpecError
from flexwire.schema.pairs import same_bytes
from flexwire.schema.resolve import resolve
from flexwire.schema.write import write_spec
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from flexwire.schema.spec import MessageSpec
    from flexwire.wire.schema import Schema


@dataclass(slots=True)
class CatalogSpec:
    """A spec that the catalog keeps, and the versions it serves in each release."""

    spec: MessageSpec
    text: str
    serves: dict[str, list[int]] = field(default_factory=dict)
    _schemas: dict[int, tuple[object, Schema]] = field(default_factory=dict)

    def laid_out(self, version: int) -> tuple[object, Schema]:
        """The version's layout, names of fields included, and its schema."""
        if version not in self._schemas:
            schema = resolve(self.spec, version)
            self._schemas[version] = (schema.layout(), schema)
        return self._schemas[version]


class History:
    """A message through its releases, which are added from the newest on.

    Where releases differ in the layout of a version, names of fields included, the spec of each
    is kept. Defaults, ``ignorable``, ``mapKey`` and the like are those of the newest spec kept.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.modules: list[str] = []
        self.kept: list[CatalogSpec] = []
        # The spec that serves a version by default: that of the newest release.
        self._defaults: dict[int, CatalogSpec] = {}
        # By version: every layout, with a schema that has it and the releases.
        self._layouts: dict[int, dict[object, tuple[Schema, set[str]]]] = {}

    @property
    def versions(self) -> list[int]:
        """Every version that a release had."""
        return sorted(self._defaults)

    def add(self, release: str, module: str, spec: MessageSpec) -> None:
        """Add the spec of the next older release; it has versions, and a highest one."""
        if spec.valid_versions.open_ended:
            reason = f"validVersions {spec.valid_versions} has no end; a release has a highest one"
            raise SpecError(reason, source=spec.source)
        self.add_served(release, (module,), [(spec, spec.valid_versions)])

    def add_served(
        self,
        release: str,
        modules: Iterable[str],
        served: Sequence[tuple[MessageSpec, Versions]],
    ) -> None:
        """Add the next older release as specs that each give some of its versions their layout."""
        if any(release in spec_in_catalog.serves for spec_in_catalog in self.kept):
            raise SpecError(f"{self.name} is there twice in {release}", source=served[0][0].source)
        self.modules += [module for module in modules if module not in self.modules]
        for spec, versions in served:
            new = self._same(spec)
            for version in versions:
                layout, schema = new.laid_out(version)
                serving = self._serving(version, layout) or new
                if serving not in self.kept:
                    self.kept.append(serving)
                serving.serves.setdefault(release, []).append(version)
                layouts = self._layouts.setdefault(version, {})
                layouts.setdefault(layout, (schema, set()))[1].add(release)
                self._defaults.setdefault(version, serving)

    def _same(self, spec: MessageSpec) -> CatalogSpec:
        text = write_spec(spec)
        return next((same for same in self.kept if same.text == text), CatalogSpec(spec, text))

    def _serving(self, version: int, layout: object) -> CatalogSpec | None:
        """The newest kept spec that gives the version this layout."""
        for candidate in self.kept:
            if (
                version in candidate.spec.valid_versions
                and candidate.laid_out(version)[0] == layout
            ):
                return candidate
        return None

    def changed(self, read: Collection[str]) -> Iterator[int]:
        """The versions that the releases in ``read``, and no others, lay out in their way."""
        for version in self.versions:
            layouts = self._by_bytes(version)
            if len(layouts) > 1 and _only(read, layouts):
                yield version

    def renamed(self, read: Collection[str]) -> Iterator[int]:
        """The versions whose fields only the releases in ``read`` name so, with the same bytes."""
        for version in self.versions:
            names = [having for _, having in self._layouts[version].values()]
            if len(names) > 1 and len(self._by_bytes(version)) == 1 and _only(read, names):
                yield version

    def _by_bytes(self, version: int) -> list[set[str]]:
        """For each way in which a version's bytes are laid out, the releases that have it."""
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
        """The message's entry in the catalog's index; ``releases`` are in order of age."""
        newest = self.kept[0].spec
        for version, serving in self._defaults.items():
            if (version in serving.spec.flexible_versions) != (version in newest.flexible_versions):
                reason = f"{self.name} v{version}: the specs disagree whether it is flexible"
                raise SpecError(reason, source=serving.spec.source)
        facts: dict[str, object] = {"module": self.modules[0]}
        if self.modules[1:]:
            facts["formerModules"] = self.modules[1:]
        facts["type"] = newest.type.value
        if newest.api_key is not None:
            facts["apiKey"] = newest.api_key
        facts["versions"] = str(Versions.of(self.versions))
        facts["flexibleVersions"] = str(newest.flexible_versions)
        facts["specs"] = [_runs(serving.serves, releases) for serving in self.kept]
        return facts


def _only(read: Collection[str], layouts: Iterable[set[str]]) -> bool:
    """Whether only the releases in ``read`` have some layout."""
    return any(having <= set(read) for having in layouts)


def _runs(serves: dict[str, list[int]], releases: Sequence[str]) -> list[tuple[str, str, str]]:
    """Collapse releases in a row that have the same versions: (first, last, versions)."""
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
