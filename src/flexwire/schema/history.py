"""One message through Kafka's releases: which of its specs are needed, and where."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flexwire.errors import SpecError
from flexwire.schema.resolve import resolve
from flexwire.schema.write import write_spec
from flexwire.versions import Versions
from flexwire.wire.schema import NullableStruct, Schema
from flexwire.wire.types import Array, Bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flexwire.schema.spec import MessageSpec
    from flexwire.wire.types import Type


@dataclass(slots=True)
class Kept:
    """A spec that the catalog keeps, and the versions it serves in each release."""

    spec: MessageSpec
    text: str
    serves: dict[str, list[int]] = field(default_factory=dict)
    _layouts: dict[int, tuple[object, object]] = field(default_factory=dict)

    def layouts(self, version: int) -> tuple[object, object]:
        """The version's layout with the fields' names and without."""
        if version not in self._layouts:
            schema = resolve(self.spec, version)
            self._layouts[version] = (schema.layout(), nameless(schema))
        return self._layouts[version]


class History:
    """A message through its releases, which are added from the newest on.

    Where releases differ in the layout of a version, names of fields included, the spec of each
    is kept. Defaults, ``ignorable``, ``mapKey`` and the like are those of the newest spec kept.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.modules: list[str] = []
        self.kept: list[Kept] = []
        # The spec that serves a version by default: that of the newest release.
        self._defaults: dict[int, Kept] = {}
        self._layouts: dict[int, set[tuple[object, object]]] = {}

    @property
    def versions(self) -> list[int]:
        """Every version that a release had."""
        return sorted(self._defaults)

    def add(self, release: str, module: str, spec: MessageSpec) -> None:
        """Add the spec of the next older release; it has versions, and a highest one."""
        if any(release in kept.serves for kept in self.kept):
            raise SpecError(f"{self.name} is there twice in {release}", source=spec.source)
        if spec.valid_versions.open_ended:
            reason = f"validVersions {spec.valid_versions} has no end; a release has a highest one"
            raise SpecError(reason, source=spec.source)
        if module not in self.modules:
            self.modules.append(module)
        new = self._same(spec)
        for version in spec.valid_versions:
            layouts = new.layouts(version)
            serving = self._serving(version, layouts) or new
            if serving not in self.kept:
                self.kept.append(serving)
            serving.serves.setdefault(release, []).append(version)
            self._layouts.setdefault(version, set()).add(layouts)
            self._defaults.setdefault(version, serving)

    def _same(self, spec: MessageSpec) -> Kept:
        text = write_spec(spec)
        return next((kept for kept in self.kept if kept.text == text), Kept(spec, text))

    def _serving(self, version: int, layouts: tuple[object, object]) -> Kept | None:
        """The newest kept spec that gives the version this layout."""
        for kept in self.kept:
            if version in kept.spec.valid_versions and kept.layouts(version) == layouts:
                return kept
        return None

    def changed(self) -> Iterator[int]:
        """The versions whose bytes are laid out in more than one way."""
        for version in self.versions:
            if len({nameless for _, nameless in self._layouts[version]}) > 1:
                yield version

    def renamed(self) -> Iterator[int]:
        """The versions whose fields have other names in other releases, and no other bytes."""
        for version in self.versions:
            layouts = self._layouts[version]
            if len(layouts) > 1 and len({nameless for _, nameless in layouts}) == 1:
                yield version

    def facts(self, releases: Sequence[str]) -> dict[str, object]:
        """The message's entry in the catalog's index; ``releases`` are in order of age."""
        newest = self.kept[0].spec
        for version, kept in self._defaults.items():
            if (version in kept.spec.flexible_versions) != (version in newest.flexible_versions):
                reason = f"{self.name} v{version}: the specs disagree whether it is flexible"
                raise SpecError(reason, source=kept.spec.source)
        facts: dict[str, object] = {"module": self.modules[0]}
        if self.modules[1:]:
            facts["formerModules"] = self.modules[1:]
        facts["type"] = newest.type.value
        if newest.api_key is not None:
            facts["apiKey"] = newest.api_key
        facts["versions"] = str(Versions.of(self.versions))
        facts["flexibleVersions"] = str(newest.flexible_versions)
        facts["specs"] = [_runs(kept.serves, releases) for kept in self.kept]
        return facts


def nameless(type_: Type) -> object:
    """What decides the bytes: a layout without names, bytes and records alike."""
    if isinstance(type_, Schema):
        inline = tuple(nameless(one.type) for one in type_.inline)
        tagged = tuple((tag, nameless(one.type)) for tag, one in type_.tagged.items())
        return (inline, type_.flexible, tagged)
    if isinstance(type_, NullableStruct):
        return ("NULLABLE", nameless(type_.schema))
    if isinstance(type_, Array):
        return (type_.name, nameless(type_.element))
    if isinstance(type_, Bytes):
        return type_.name.replace("RECORDS", "BYTES")
    return type_.layout()


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
