"""Kafka's releases into the catalog that `flexwire.schema.catalog` reads.

Of every message only as many specs are kept as it takes to give each released version its layout
in each release. Where releases differ in the layout of one version, the newest is its default.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexwire.errors import SpecError
from flexwire.schema.catalog import INDEX
from flexwire.schema.history import History
from flexwire.schema.parse import parse_spec
from flexwire.schema.releases import release_order
from flexwire.schema.write import write_specs

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import read and wrote.

    ``pairs`` counts each version of each message once. ``changed`` are those whose bytes are not
    laid out alike in all their releases, ``renamed`` those where only a field's name differs.
    """

    releases: tuple[str, ...]
    files: int
    messages: int
    pairs: int
    specs: int
    changed: tuple[tuple[str, int], ...]
    renamed: tuple[tuple[str, int], ...]
    written_bytes: int


def import_specs(source: Path, out: Path) -> ImportReport:
    """Read releases from ``source`` and write their catalog into ``out``.

    ``source`` holds ``<release>/<module>/*.json``, or is itself one such release. Files that an
    earlier import wrote and this one does not are removed; nothing else is.

    Raises `SpecError` for a file that is not a spec; nothing is written then.
    """
    found = _find_releases(source)
    messages: dict[str, History] = {}
    files = 0
    # From the newest on, so that a spec kept for a newer release serves the older ones too.
    for release, paths in reversed(found.items()):
        for path in paths:
            spec = parse_spec(path.read_text(encoding="utf-8"), str(path.relative_to(source)))
            files += 1
            # A spec without versions says that the message was removed.
            if spec.valid_versions:
                history = messages.setdefault(spec.name, History(spec.name))
                history.add(release, path.parent.name, spec)
    ordered = [messages[name] for name in sorted(messages)]
    releases = {
        release: sorted({path.parent.name for path in paths}) for release, paths in found.items()
    }
    texts = {
        f"{one.modules[0]}/{one.name}.json": write_specs([kept.spec for kept in one.kept])
        for one in ordered
    }
    texts[INDEX] = _index(releases, ordered)
    _write(out, texts)
    return ImportReport(
        releases=tuple(releases),
        files=files,
        messages=len(ordered),
        pairs=sum(len(one.versions) for one in ordered),
        specs=sum(len(one.kept) for one in ordered),
        changed=tuple((one.name, version) for one in ordered for version in one.changed()),
        renamed=tuple((one.name, version) for one in ordered for version in one.renamed()),
        written_bytes=sum(len(text.encode()) for text in texts.values()),
    )


def _find_releases(source: Path) -> dict[str, list[Path]]:
    """The spec files of each release, oldest release first."""
    single = sorted(source.glob("*/*.json"))
    if single:
        return {_checked(source.resolve().name): single}
    releases: dict[str, list[Path]] = {}
    for path in sorted(source.glob("*/*/*.json")):
        releases.setdefault(path.parent.parent.name, []).append(path)
    if not releases:
        raise SpecError("no specs at <release>/<module>/*.json here", source=str(source))
    return {release: releases[release] for release in sorted(releases, key=release_order)}


def _checked(release: str) -> str:
    release_order(release)
    return release


def _index(releases: dict[str, list[str]], messages: list[History]) -> str:
    """One line for each release and message, so that a change shows as a line."""
    order = list(releases)
    facts = {one.name: one.facts(order) for one in messages}
    blocks = []
    for title, items in (("releases", releases.items()), ("messages", facts.items())):
        lines = [f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in items]
        blocks.append(f'  "{title}": {{\n' + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def _write(out: Path, texts: dict[str, str]) -> None:
    """Bring ``out`` to these files; one that is right already is left alone."""
    stale = _former_files(out) - set(texts)
    for name, text in texts.items():
        path = out / name
        data = text.encode()
        if path.is_file() and path.read_bytes() == data:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for name in stale:
        (out / name).unlink(missing_ok=True)


def _former_files(out: Path) -> set[str]:
    """The files of the catalog that is there, by its index; none where there is no index."""
    path = out / INDEX
    if not path.is_file():
        return set()
    try:
        messages = json.loads(path.read_text(encoding="utf-8"))["messages"]
        return {f"{facts['module']}/{name}.json" for name, facts in messages.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"not a catalog's index ({error!r}); remove it to import here"
        raise SpecError(reason, source=str(path)) from None
