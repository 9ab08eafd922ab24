"""Message specs of one's own, read at run time: from files, directories, jars or git."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, get_args

from flexwire.arguments import refuse, to_choice
from flexwire.schema.parse import Mode, parse_spec
from flexwire.schema.resolve import resolve
from flexwire.schema.sources import read_sources
from flexwire.schema.text import Object
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import MessageSpec
    from flexwire.schema.text import SpecText

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def read_specs(paths: Paths, *, mode: Mode = "strict") -> dict[str, MessageSpec]:
    """Give the specs of all that `read_sources` reads, by name.

    Raises `SpecError` for what cannot be read or is not a spec, for a place without specs, for a
    name that two files give, and for a version that cannot be laid out.
    """
    found: dict[str, MessageSpec] = {}
    to_choice(mode, "mode", get_args(Mode))
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
    """Give the texts of all that `read_sources` reads, each once; raises `SpecError`."""
    for source in read_sources(os.fspath(path) for path in _given(paths)):
        yield source.text()


def _given(paths: Paths) -> list[str | os.PathLike[str]]:
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    if not isinstance(given, Iterable) or isinstance(given, bytes | bytearray | Mapping):
        raise refuse("paths", "a path or several", paths)
    several = list(given)
    for one in several:
        if not isinstance(one, str | os.PathLike) or not isinstance(os.fspath(one), str):
            raise refuse("paths", "a str or a Path for each", one)
    if not several:
        raise refuse("paths", "one at least", paths)
    return several


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
