"""Messages from directories, git revisions, jars, and releases of the catalog."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from flexwire.errors import SpecError
from flexwire.schema.parse import Mode, parse_node
from flexwire.schema.sources import RELEASE, entries_of_release, read_sources
from flexwire.schema.spec import FIRST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from flexwire.schema.sources import SpecFile
    from flexwire.schema.spec import MessageSpec, Position
    from flexwire.schema.text import SpecText


class InputKind(Enum):
    """The form in which the user specified one side of a comparison.

    The form determines which other facts exist.
    """

    FILE = "a file: only this file"
    TREE = "a directory, a jar or a path in git: all its specs"
    RELEASE = "a release in the catalog: all imported modules"


@dataclass(frozen=True, slots=True)
class SpecOrigin:
    """The place of a message.

    ``root`` is the path that was given, and ``directory`` is relative to ``root``.
    """

    given: InputKind = InputKind.TREE
    root: str = ""
    directory: str = ""


@dataclass(frozen=True, slots=True)
class Edition:
    """A message, in the form in which a directory or a release contains it.

    ``by_version`` contains the specs for versions that ``spec`` does not describe. (The bundled
    catalog stores differences instead of a file for each release.) ``top`` is the place at which
    the spec begins in its text, after the comments. ``path`` is the name of the message's file in
    the configuration, and ``place`` is where the message was found. ``own_text`` is false for an
    older release of the catalog: the values of ``ignorable`` and ``latestVersionUnstable`` are from
    a newer release with the same layouts.
    """

    spec: MessageSpec
    by_version: Mapping[int, MessageSpec] = field(default_factory=dict)
    top: Position = FIRST
    path: str = ""
    place: SpecOrigin = SpecOrigin()
    own_text: bool = True

    def at(self, version: int) -> MessageSpec:
        """Return the spec for a version."""
        return self.by_version.get(version, self.spec)


def read_editions(
    paths: Iterable[str], mode: Mode
) -> tuple[dict[str, Edition], dict[str, SpecText]]:
    """Read specs from files, directories, jars, ``REV:PATH`` or ``release:NAME``.

    Returns the editions and the texts, by the names of messages. Messages from the catalog have no
    texts. Raises `SpecError` for input that cannot be read, and for a name that occurs in two
    files.
    """
    paths = list(paths)
    editions: dict[str, Edition] = {}
    texts: dict[str, SpecText] = {}
    for path in paths:
        if path.startswith(RELEASE):
            editions |= released_editions(path.removeprefix(RELEASE))
    own, texts = editions_of(
        read_sources(path for path in paths if not path.startswith(RELEASE)), mode
    )
    return editions | own, texts


def editions_of(
    sources: Iterable[SpecFile], mode: Mode
) -> tuple[dict[str, Edition], dict[str, SpecText]]:
    """Read specs, and return editions and texts by name. Raises the errors of `read_editions`."""
    editions: dict[str, Edition] = {}
    texts: dict[str, SpecText] = {}
    for source in sources:
        text = source.text()
        root = text.read(whole=mode != "legacy")
        spec = parse_node(text, root, mode=mode)
        if spec.valid_versions.open_ended:
            reason = f"validVersions {spec.valid_versions} has no end; write the highest version"
            raise text.error(reason, root.offset)
        if spec.name in texts:
            reason = f"message {spec.name} is already defined in {texts[spec.name].source}"
            raise SpecError(reason, source=source.name)
        place = SpecOrigin(
            InputKind.TREE if source.whole else InputKind.FILE, source.given, source.inside
        )
        top = text.position(root.offset)
        editions[spec.name] = Edition(spec, top=top, path=source.path, place=place)
        texts[spec.name] = text
    return editions, texts


def released_editions(release: str) -> dict[str, Edition]:
    """Return the messages of a release of the catalog, by name. "4.0" means the newest 4.0.

    Raises `SpecError` for a release that is not in the catalog, and if `CatalogEntry.whole_spec`
    raises one.
    """
    release, entries = entries_of_release(release)
    editions = {}
    for entry in entries:
        place = SpecOrigin(InputKind.RELEASE, f"{RELEASE}{release}", entry.module)
        editions[entry.name] = Edition(
            entry.whole_spec(release), place=place, own_text=release == entry.last_release
        )
    return editions
