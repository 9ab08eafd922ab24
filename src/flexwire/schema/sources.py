"""Read specs from files, directories, source trees, jars, git revisions and releases.

In a Kafka jar, specs are at one of three paths. In a source tree, they are in the resources of
every module. Other JSON files in these places are not specs.
"""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, get_args

from flexwire.arguments import refuse, to_choice
from flexwire.errors import SpecError, UnknownMessageError
from flexwire.schema.catalog import catalog
from flexwire.schema.parse import Mode, parse_spec
from flexwire.schema.resolve import resolve
from flexwire.schema.text import JsonObject, SpecText
from flexwire.schema.write import write_spec
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.catalog import CatalogEntry
    from flexwire.schema.spec import MessageSpec


# The largest spec in a release takes 13 kB.
LARGEST = 1 << 20
JARS = frozenset({".jar", ".zip"})
RELEASE = "release:"
"""The prefix for the name of a release in the catalog."""

_IN_JARS = ("common/message", "common/metadata", "message")
_RESOURCES = "src/main/resources/"
# Examples: kafka-clients-4.4.0.jar, kafka_2.13-4.4.0.jar
_JAR_NAME = re.compile(r"(?P<name>.+?)-(?P<release>\d+\.\d+.*)")
_ARTIFACT = re.compile(r"kafka[-_](?P<module>.+)")
_PROPERTIES = "gradle.properties"
_VERSION = re.compile(r"^version=(\S+)$", re.MULTILINE)
_SCALA = re.compile(r"\d+\.\d+")


@dataclass(frozen=True, slots=True)
class SpecFile:
    """A file that contains a spec.

    ``name`` is the name of the file in findings. ``path`` is the name of the file in the
    configuration: an absolute path on disk, or a path within a jar or a git revision. Specs that
    belong together have the same ``directory``, and ``whole`` is true if all of these were
    requested. ``content`` is cut off one byte after the largest size that is accepted. ``module``
    and ``release`` are the part of Kafka and the release to which the spec belongs, if the file's
    place indicates them. ``given`` is the path that was requested. ``inside`` is the directory
    relative to ``given``, and is empty if the file is directly in ``given``.
    """

    name: str
    path: str
    directory: str
    content: bytes
    whole: bool
    module: str = ""
    release: str = ""
    given: str = ""
    inside: str = ""

    def text(self) -> SpecText:
        """Return the content as a string. Raises `SpecError` if it is too large or not UTF-8."""
        if len(self.content) > LARGEST:
            reason = f"larger than {LARGEST >> 20} MiB, the limit for a spec"
            raise SpecError(reason, source=self.name)
        try:
            return SpecText(self.content.decode("utf-8"), self.name)
        except UnicodeDecodeError as error:
            raise SpecError(f"not UTF-8 at byte {error.start}", source=self.name) from None


def read_sources(paths: Iterable[str]) -> list[SpecFile]:
    """Read the specs of all paths.

    A path is one of:
    - a file;
    - a directory with everything below it, such as a Kafka source tree, or a directory of jars,
      such as ``libs`` in a distribution;
    - a jar;
    - ``REV:PATH`` for git, with PATH relative to the top of the repository, and empty for a source
      tree;
    - ``release:4.0``, which is a release in the catalog.

    Hidden files and directories are left out. A file that is given twice is read once. Raises
    `SpecError` for a path that is missing or cannot be read, and for a path without specs.
    """
    files: dict[tuple[str, str], SpecFile] = {}
    for path in paths:
        here = list(_read(path))
        if not here:
            raise SpecError("no specs here: no *.json files", source=path)
        for source in (replace(spec_file, given=path) for spec_file in here):
            key = source.directory, PurePosixPath(source.path).name
            if source.whole or key not in files:
                files[key] = source
    return list(files.values())


def _read(path: str) -> Iterator[SpecFile]:
    if path.startswith(RELEASE):
        return _from_release(path)
    revision, colon, inside = path.partition(":")
    location = Path(path)
    try:
        if location.is_dir():
            return _from_directory(location)
        if location.is_file():
            is_jar = location.suffix in JARS
            return _from_jar(location) if is_jar else iter([_from_file(location, whole=False)])
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if colon and revision and not revision.startswith("-"):
        return _from_git(revision, inside)
    raise SpecError("no such file or directory, and no such REV:PATH in git", source=path)


def _unreadable(path: object, error: Exception) -> SpecError:
    reason = error.strerror if isinstance(error, OSError) else None
    return SpecError(f"cannot be read: {reason or error}", source=str(path))


def _from_file(path: Path, *, whole: bool, inside: str = "") -> SpecFile:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise _unreadable(path, error) from None
    absolute = path.absolute()
    return SpecFile(
        name=str(path),
        path=str(absolute),
        directory=os.path.realpath(path.parent),
        content=content,
        whole=whole,
        module=_module_of(str(absolute)) or absolute.parent.name,
        inside=inside,
    )


def _from_directory(root: Path) -> Iterator[SpecFile]:
    specs, jars = [], []
    for directory, inner, files in os.walk(root, onerror=_raise):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        here = [Path(directory) / name for name in sorted(files)]
        specs += [path for path in here if _is_spec(path.name)]
        jars += [path for path in here if path.suffix in JARS]
    release = _version_in(_gradle(root))
    for path in map(Path, _chosen(map(str, specs))):
        if not path.is_file():
            # Opening a special file, such as a pipe, might block forever.
            raise SpecError("not a regular file", source=str(path))
        inside = _below(path.parent.as_posix(), root.as_posix())
        yield replace(_from_file(path, whole=True, inside=inside), release=release)
    if not specs:
        for jar in jars:
            # All jars contain the same paths. Only their modules distinguish them.
            for spec_file in _from_jar(jar, kafka_only=True):
                yield replace(spec_file, inside=f"{spec_file.module}/{spec_file.inside}")


def _gradle(root: Path) -> bytes:
    try:
        return (root / _PROPERTIES).read_bytes()
    except OSError:
        # Most directories are not source trees.
        return b""


def _version_in(properties: bytes) -> str:
    r"""Return the version in a source tree's properties, or "" if they contain no version.

    >>> _version_in(b"group=org.apache.kafka\nversion=4.5.0-SNAPSHOT\n")
    '4.5.0-SNAPSHOT'
    """
    version = _VERSION.search(properties.decode("utf-8", "replace"))
    return version[1] if version else ""


def _below(directory: str, root: str) -> str:
    """Return a directory relative to another directory, or "" if both are the same."""
    relative = posixpath.relpath(directory, root or ".")
    return "" if relative == "." else relative


def _chosen(paths: Iterable[str]) -> list[str]:
    """Return the JSON files that are specs. In a source tree, only resources contain specs."""
    paths = list(paths)
    resources = [path for path in paths if _module_of(path)]
    return resources or paths


def _module_of(path: str) -> str:
    """Return the module of a spec in a source tree, or "" if the path is not in resources.

    >>> _module_of("/src/kafka/group-coordinator/src/main/resources/common/message/A.json")
    'group-coordinator'
    """
    before, resources, inside = path.rpartition(_RESOURCES)
    if not resources or not _is_kafkas(inside):
        return ""
    return PurePosixPath(before).name


def _is_kafkas(inside: str) -> bool:
    """Return whether a path, in resources or in a jar, is a place for Kafka's specs."""
    return str(PurePosixPath(inside).parent) in _IN_JARS


def _is_spec(path: str) -> bool:
    """Return whether a file counts as a spec. Jars contain other JSON files in META-INF."""
    parts = PurePosixPath(path).parts
    hidden = any(part.startswith(".") or part == "META-INF" for part in parts)
    return path.endswith(".json") and not hidden


def _raise(error: OSError) -> None:
    raise _unreadable(error.filename, error)


def _from_jar(path: Path, *, kafka_only: bool = False) -> Iterator[SpecFile]:
    """Yield the specs in a jar: those at Kafka's paths, or all JSON files if there are none."""
    try:
        with zipfile.ZipFile(path) as jar:
            entries = [entry for entry in jar.infolist() if _is_spec(entry.filename)]
            kafkas = [entry for entry in entries if _is_kafkas(entry.filename)]
            chosen = kafkas if kafkas or kafka_only else entries
            module, release = jar_name(path) if kafkas else ("", "")
            for entry in sorted(chosen, key=lambda entry: entry.filename):
                with jar.open(entry) as file:
                    content = file.read(LARGEST + 1)
                spec_file = _inside(str(path), entry.filename, content, module=module)
                yield replace(spec_file, release=release)
    # The errors that zipfile raises for damage, for encryption, and for data that it cannot
    # inflate.
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
        raise _unreadable(path, error) from None


def jar_name(path: Path) -> tuple[str, str]:
    """Return the module and the release that the name of a Kafka jar contains.

    A missing part is "".

    >>> jar_name(Path("kafka-group-coordinator-4.4.0.jar")), jar_name(Path("kafka_2.13-3.8.1.jar"))
    (('group-coordinator', '4.4.0'), ('core', '3.8.1'))
    """
    named = _JAR_NAME.fullmatch(path.stem)
    name, release = (named["name"], named["release"]) if named else (path.stem, "")
    artifact = _ARTIFACT.fullmatch(name)
    if artifact is None:
        return name, release
    # The name of the broker's own jar includes its Scala version.
    return "core" if _SCALA.fullmatch(artifact["module"]) else artifact["module"], release


def _inside(
    container: str, path: str, content: bytes, *, root: str = "", module: str = ""
) -> SpecFile:
    """Return a file in a jar or a git revision.

    ``root`` is the file or directory that was requested.
    """
    parent = PurePosixPath(path).parent
    whole = path != root
    return SpecFile(
        name=f"{container}:{path}",
        path=path,
        directory=f"{container}:{parent}",
        content=content,
        whole=whole,
        module=module,
        inside=_below(str(parent), root) if whole else "",
    )


def _from_release(path: str) -> Iterator[SpecFile]:
    """Yield the specs of a release in the catalog, as new texts without prose."""
    release, entries = entries_of_release(path.removeprefix(RELEASE))
    for entry in entries:
        text = write_spec(entry.whole_spec(release))
        file = f"{entry.module}/{entry.name}.json"
        spec_file = _inside(f"{RELEASE}{release}", file, text.encode(), module=entry.module)
        yield replace(spec_file, release=release)


def entries_of_release(asked: str) -> tuple[str, list[CatalogEntry]]:
    """Return a release of the catalog and its messages. "4.0" means the newest 4.0.

    Raises `SpecError` for a release that is not in the catalog.
    """
    try:
        release = catalog().release(asked)
    except UnknownMessageError as error:
        raise SpecError(str(error), source=f"{RELEASE}{asked}") from None
    entries = map(catalog().entry, catalog().names())
    return release, [entry for entry in entries if release in entry.releases]


def _from_git(revision: str, path: str) -> Iterator[SpecFile]:
    paths = [path] if path else []
    listed = _git(revision, ["ls-tree", "-r", "-l", "-z", "--full-tree", revision, "--", *paths])
    blobs = {}
    for line in listed.decode("utf-8", "backslashreplace").split("\0"):
        facts, _, name = line.partition("\t")
        # Symbolic links and submodules are excluded here.
        if facts.startswith("100") and _is_spec(name):
            _, _, blob, size = facts.split()
            blobs[name] = blob, int(size)
    blobs = {name: blobs[name] for name in _chosen(blobs)}
    read = [blob for blob, size in blobs.values() if size <= LARGEST]
    contents = _git_blobs(revision, read)
    tree = any(map(_module_of, blobs)) and _git_has(revision, _PROPERTIES)
    release = _version_in(_git(revision, ["show", f"{revision}:{_PROPERTIES}"])) if tree else ""
    for name, (blob, _) in blobs.items():
        # A file that is too large is not read. This many zeros make the later size check fail.
        content = contents.get(blob, bytes(LARGEST + 1))
        spec_file = _inside(revision, name, content, root=path, module=_module_of(name))
        yield replace(spec_file, release=release)


def _git_has(revision: str, path: str) -> bool:
    return bool(_git(revision, ["ls-tree", "--full-tree", revision, "--", path]))


def _git_blobs(revision: str, blobs: list[str]) -> dict[str, bytes]:
    answer = _git(revision, ["cat-file", "--batch"], "\n".join(blobs).encode())
    contents = {}
    place = 0
    for blob in blobs:
        end = answer.index(b"\n", place)
        size = int(answer[place:end].split()[-1])
        contents[blob] = answer[end + 1 : end + 1 + size]
        place = end + 1 + size + 1
    return contents


def _git(revision: str, arguments: list[str], standard_input: bytes = b"") -> bytes:
    command = ["git", "--no-pager", *arguments]
    try:
        process = subprocess.run(command, input=standard_input, capture_output=True, check=True)  # noqa: S603 - no shell is used, and no argument looks like an option to git
    except FileNotFoundError:
        raise SpecError("git is not installed", source=revision) from None
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode("utf-8", "replace").strip()
        raise SpecError(f"git cannot read the path: {reason}", source=revision) from None
    return process.stdout


Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def read_specs(paths: Paths, *, mode: Mode = "strict") -> dict[str, MessageSpec]:
    """Return the specs of all paths that `read_sources` reads, by name.

    Raises `SpecError` for input that cannot be read or is not a spec, for a path without specs, for
    a name that occurs in two files, and for a version without a layout.
    """
    specs: dict[str, MessageSpec] = {}
    to_choice(mode, "mode", get_args(Mode))
    for text in read_texts(paths):
        spec = parse_spec(text.text, text.source, mode=mode)
        first = specs.setdefault(spec.name, spec)
        if first is not spec:
            reason = f"message {spec.name} is already defined in {first.source}; rename one"
            raise text.error(reason, _name_offset(text))
        for version in turning_points(spec):
            resolve(spec, version)
    return specs


def read_texts(paths: Paths) -> Iterator[SpecText]:
    """Yield the text of each file that `read_sources` reads. Raises `SpecError`."""
    for source in read_sources(os.fspath(path) for path in _to_path_list(paths)):
        yield source.text()


def _to_path_list(paths: Paths) -> list[str | os.PathLike[str]]:
    candidates = [paths] if isinstance(paths, str | os.PathLike) else paths
    if not isinstance(candidates, Iterable) or isinstance(candidates, bytes | bytearray | Mapping):
        raise refuse("paths", "a path or several paths", paths)
    several = list(candidates)
    for path in several:
        if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
            raise refuse("paths", "a str or a Path for each path", path)
    if not several:
        raise refuse("paths", "at least one", paths)
    return several


def _name_offset(text: SpecText) -> int:
    node = text.read(whole=False)
    member = node.members.get("name") if isinstance(node, JsonObject) else None
    return member.value.offset if member else node.offset


def turning_points(spec: MessageSpec) -> list[int]:
    """Return the first version, and each version whose layout may differ from the previous one."""
    ranges = [spec.flexible_versions]
    for field in spec.walk():
        ranges += [field.versions, field.nullable_versions, field.tagged_versions]
        ranges.append(field.flexible_versions or Versions.NONE)
    edges = {spec.valid_versions.lowest}
    edges |= {
        edge for versions in ranges if versions for edge in (versions.lowest, versions.highest + 1)
    }
    return sorted(edge for edge in edges if edge in spec.valid_versions)
