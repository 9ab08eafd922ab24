"""Messages as a directory, a git revision, a jar or a Kafka release of the catalog has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from flexwire.errors import SpecError
from flexwire.schema.parse import Mode, parse_node
from flexwire.schema.sources import RELEASE, read_sources, released
from flexwire.schema.spec import FIRST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from flexwire.schema.sources import SpecFile
    from flexwire.schema.spec import MessageSpec, Position
    from flexwire.schema.text import SpecText


class InputKind(Enum):
    """How a side of a comparison was named, and so what else it would have."""

    FILE = "a file: that alone"
    TREE = "a directory, a jar or a path in git: all that is in it"
    RELEASE = "a release of the catalog: all the modules that were imported"


@dataclass(frozen=True, slots=True)
class SpecOrigin:
    """Where a message stands: ``root`` is what was given, ``directory`` the way from there."""

    given: InputKind = InputKind.TREE
    root: str = ""
    directory: str = ""


@dataclass(frozen=True, slots=True)
class Edition:
    """A message as a directory or a release has it.

    ``by_version`` are the specs that lay a version out otherwise than ``spec`` does: the bundled
    catalog holds what differs, not every release's own file. ``top`` is where the spec begins in
    its text, after the comments, and ``path`` what the configuration calls its file. ``place`` is
    where it was found. ``own_text`` is false for an older release of the catalog, which has
    ``ignorable`` and ``latestVersionUnstable`` as a newer release with the same layouts has them.
    """

    spec: MessageSpec
    by_version: Mapping[int, MessageSpec] = field(default_factory=dict)
    top: Position = FIRST
    path: str = ""
    place: SpecOrigin = SpecOrigin()
    own_text: bool = True

    def at(self, version: int) -> MessageSpec:
        """The spec that lays out a version."""
        return self.by_version.get(version, self.spec)


def read_editions(
    paths: Iterable[str], mode: Mode
) -> tuple[dict[str, Edition], dict[str, SpecText]]:
    """Read the specs of files, directories, jars, ``REV:PATH`` or ``release:NAME``, by name.

    Gives their texts too, where there are any: the catalog keeps facts. Raises `SpecError` for what
    cannot be read, and for a name that two files give.
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
    """Read specs and give them by name, and their texts; raises as `read_editions` does."""
    editions: dict[str, Edition] = {}
    texts: dict[str, SpecText] = {}
    for source in sources:
        text = source.text()
        root = text.read(whole=mode != "legacy")
        spec = parse_node(text, root, mode=mode)
        if spec.valid_versions.open_ended:
            reason = f"the valid versions {spec.valid_versions} have no end; write the last one"
            raise text.error(reason, root.offset)
        if spec.name in texts:
            reason = f"message {spec.name} is already that of {texts[spec.name].source}"
            raise SpecError(reason, source=source.name)
        place = SpecOrigin(
            InputKind.TREE if source.whole else InputKind.FILE, source.given, source.inside
        )
        top = text.position(root.offset)
        editions[spec.name] = Edition(spec, top=top, path=source.path, place=place)
        texts[spec.name] = text
    return editions, texts


def released_editions(release: str) -> dict[str, Edition]:
    """Give the messages of a release of the catalog, by name; "4.0" is the newest 4.0.

    Raises `SpecError` for a release that is not in it, and where `Entry.whole_spec` does.
    """
    release, entries = released(release)
    editions = {}
    for entry in entries:
        place = SpecOrigin(InputKind.RELEASE, f"{RELEASE}{release}", entry.module)
        editions[entry.name] = Edition(
            entry.whole_spec(release), place=place, own_text=release == entry.last_release
        )
    return editions
