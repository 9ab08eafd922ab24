"""Import Kafka's releases into the catalog that `flexwire.schema.catalog` reads.

The catalog keeps only the specs that are needed for the layout of each version in each release. If
a version has different layouts in different releases, the newest layout is the default.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from flexwire.atomic_files import write_together
from flexwire.errors import SpecError
from flexwire.schema.catalog import INDEX, is_preview, release_order
from flexwire.schema.history import History
from flexwire.schema.parse import parse_spec
from flexwire.schema.sources import read_sources
from flexwire.schema.write import write_specs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from flexwire.schema.catalog import Catalog
    from flexwire.schema.sources import SpecFile
    from flexwire.schema.spec import MessageSpec


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import: the sources that it read and the files that it wrote.

    ``read`` contains the releases that were read, and ``releases`` contains all releases in the
    catalog. ``pairs`` is the total number of versions, over all messages. ``changed`` contains the
    versions whose bytes differ between a release that was read and the other releases. ``renamed``
    contains the versions in which only the names of fields differ.
    """

    read: tuple[str, ...]
    releases: tuple[str, ...]
    files: int
    messages: int
    pairs: int
    specs: int
    changed: tuple[tuple[str, int], ...]
    renamed: tuple[tuple[str, int], ...]
    written_bytes: int


@dataclass(slots=True)
class _Release:
    """The modules of a release that was read, with the specs of each module."""

    specs: dict[str, list[MessageSpec]] = field(default_factory=dict)


def import_specs(
    sources: str | Path | Iterable[str | Path],
    out: Path,
    *,
    base: Catalog | None = None,
    release: str | None = None,
    drop: Iterable[str] = (),
    preview: bool = False,
) -> ImportReport:
    """Read releases, and write a catalog of these releases and those in ``base`` to ``out``.

    ``sources`` are paths that `read_sources` accepts, and directories of releases
    (``<release>/<module>/*.json``). ``release`` is the release to which all sources belong. Without
    ``release``, the jar, the source tree or the directory determines the release. With ``preview``,
    ``-preview`` is added to a name that would be final. A module that is read replaces the same
    module of this release in ``base``. Releases in ``drop`` are left out. An old file is removed
    only if an earlier import wrote it and this import does not.

    Raises `SpecError` for a file that is not a spec, and `UnknownMessageError` for an unknown
    release in ``drop``. In these cases nothing is written.
    """
    paths = [sources] if isinstance(sources, str | Path) else sources
    releases, files = _read(map(str, paths), release, preview=preview)
    dropped = {base.release(release) for release in drop} if base else set()
    modules = {release_name: sorted(read.specs) for release_name, read in releases.items()}
    if base is not None:
        for release_name, kept_modules in base.release_modules.items():
            if release_name not in dropped:
                modules[release_name] = sorted({*kept_modules, *modules.get(release_name, ())})
    order = sorted(modules, key=release_order)
    messages: dict[str, History] = {}
    # The newest release comes first, so that a spec that is kept for it is also used for older
    # releases.
    for each_release in reversed(order):
        read = releases.get(each_release, _Release())
        for module, specs in read.specs.items():
            for spec in specs:
                messages.setdefault(spec.name, History(spec.name)).add(each_release, module, spec)
        if base is not None and each_release in base.releases and each_release not in dropped:
            _keep(base, each_release, set(read.specs), messages)
    histories = [messages[name] for name in sorted(messages)]
    texts = {
        f"{history.modules[0]}/{history.name}.json": write_specs(
            [kept.spec for kept in history.kept]
        )
        for history in histories
    }
    texts[INDEX] = _index({release: modules[release] for release in order}, histories)
    _write(out, texts)
    return ImportReport(
        read=tuple(sorted(releases, key=release_order)),
        releases=tuple(order),
        files=files,
        messages=len(histories),
        pairs=sum(len(history.versions) for history in histories),
        specs=sum(len(history.kept) for history in histories),
        changed=_versions(histories, lambda history: history.changed(releases)),
        renamed=_versions(histories, lambda history: history.renamed(releases)),
        written_bytes=sum(len(text.encode()) for text in texts.values()),
    )


def _versions(
    histories: list[History], versions_of: Callable[[History], Iterable[int]]
) -> tuple[tuple[str, int], ...]:
    return tuple(
        (history.name, version) for history in histories for version in versions_of(history)
    )


def _keep(base: Catalog, release: str, read: set[str], messages: dict[str, History]) -> None:
    """Add the messages of a release in ``base``, except those whose modules were read again."""
    for name in base.names():
        entry = base.entry(name)
        served = entry.served(release)
        modules = (entry.module, *entry.former_modules)
        # A message that was moved belongs to the newest of its modules in the release.
        here = next(
            (module for module in modules if module in base.release_modules[release]), entry.module
        )
        if served and here not in read:
            messages.setdefault(name, History(name)).add_served(release, modules, served)


def _read(
    sources: Iterable[str], release: str | None, *, preview: bool
) -> tuple[dict[str, _Release], int]:
    """Return the releases in the sources, and the number of files."""
    releases: dict[str, _Release] = {}
    files = 0
    for source in read_sources(sources):
        named = release or source.release or _directory_release(source)
        release_order(named)
        if preview and not is_preview(named):
            named += "-preview"
        spec = parse_spec(source.text().text, source.name)
        files += 1
        specs = releases.setdefault(named, _Release()).specs.setdefault(source.module, [])
        # If a spec has no versions, the message has been removed.
        if spec.valid_versions:
            specs.append(spec)
    return releases, files


def _directory_release(source: SpecFile) -> str:
    """Return the release in the name of a directory (<release>/<module>), or the given release."""
    steps = PurePosixPath(source.inside).parts
    if len(steps) > 1:
        return steps[-2]
    if steps:
        return Path(source.given).resolve().name
    reason = "the release is unknown; specify --release, or name the directory <release>/<module>"
    raise SpecError(reason, source=source.name)


def _index(releases: dict[str, list[str]], messages: list[History]) -> str:
    """Return the index with one line for each release and message, so that diffs are readable."""
    order = list(releases)
    facts = {message.name: message.facts(order) for message in messages}
    blocks = []
    for title, items in (("releases", releases.items()), ("messages", facts.items())):
        lines = [f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in items]
        blocks.append(f'  "{title}": {{\n' + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def _write(out: Path, texts: dict[str, str]) -> None:
    """Write the files to ``out``. Files whose content is already right are not touched."""
    stale = _former_files(out) - set(texts)
    changed = {name: text.encode() for name, text in texts.items()}
    for name, data in [*changed.items()]:
        path = out / name
        if path.is_file() and path.read_bytes() == data:
            del changed[name]
    write_together(out, changed)
    for name in stale:
        (out / name).unlink(missing_ok=True)


def _former_files(out: Path) -> set[str]:
    """Return the catalog's files in ``out`` according to its index.

    Without an index, there are no such files.
    """
    path = out / INDEX
    if not path.is_file():
        return set()
    try:
        messages = json.loads(path.read_text(encoding="utf-8"))["messages"]
        return {f"{facts['module']}/{name}.json" for name, facts in messages.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"not the index of a catalog ({error!r}); delete the file to import here"
        raise SpecError(reason, source=str(path)) from None
