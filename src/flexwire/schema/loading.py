"""Message specs of one's own, read from files and directories at run time."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from flexwire.errors import SpecError
from flexwire.schema.parse import Mode, parse_spec
from flexwire.schema.resolve import resolve
from flexwire.schema.text import Object, SpecText
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import MessageSpec

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def read_specs(paths: Paths, *, mode: Mode = "strict") -> dict[str, MessageSpec]:
    """Give the specs of files, one in each, and of the ``*.json`` files of directories, by name.

    A directory's own directories are not searched. A file that is named twice is read once.
    Raises `SpecError` for a file that cannot be read or is not a spec, for a directory without
    specs, for a name that two files give, and for a version that cannot be laid out.
    """
    found: dict[str, MessageSpec] = {}
    for text in read_texts(paths):
        spec = parse_spec(text.text, text.source, mode=mode)
        first = found.setdefault(spec.name, spec)
        if first is not spec:
            reason = f"message {spec.name} is already that of {first.source}; rename one"
            raise text.error(reason, _name_offset(text))
        for version in turning_points(spec):
            resolve(spec, version)
    return found


def read_texts(paths: Paths) -> Iterator[SpecText]:
    """Give the texts of the files that `read_specs` reads, each once; raises `SpecError`."""
    seen: set[str] = set()
    for path in _files(paths):
        text = SpecText(_read(path), str(path))
        if (real := os.path.realpath(path)) not in seen:
            seen.add(real)
            yield text


def _files(paths: Paths) -> Iterator[Path]:
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    for path in map(Path, given):
        inside = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not inside:
            raise SpecError("no *.json files in this directory", source=str(path))
        yield from inside


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SpecError(f"not UTF-8 at byte {error.start}", source=str(path)) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise SpecError(f"cannot be read: {reason or error}", source=str(path)) from None


def _name_offset(text: SpecText) -> int:
    node = text.read(whole=False)
    member = node.members.get("name") if isinstance(node, Object) else None
    return member.value.offset if member else node.offset


def turning_points(spec: MessageSpec) -> list[int]:
    """The versions at which a layout can differ from that of the version before, the first too."""
    ranges = [spec.flexible_versions]
    for one in spec.walk():
        ranges += [one.versions, one.nullable_versions, one.tagged_versions]
        ranges.append(one.flexible_versions or Versions.NONE)
    edges = {spec.valid_versions.lowest}
    edges |= {edge for one in ranges if one for edge in (one.lowest, one.highest + 1)}
    return sorted(edge for edge in edges if edge in spec.valid_versions)
