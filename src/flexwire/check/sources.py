"""Where specs are read from: files, directories, git revisions and jars."""

from __future__ import annotations

import os
import posixpath
import subprocess
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from flexwire.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# The largest released spec has 13 kB.
LARGEST = 1 << 20
_JARS = {".jar", ".zip"}


@dataclass(frozen=True, slots=True)
class Source:
    """A file with a spec.

    ``name`` is what findings call it, ``path`` what the configuration does: absolute on disk, and
    the path inside of a jar or a git revision. ``directory`` is shared by the specs that belong
    together, and ``whole`` says that they were all asked for. ``content`` ends one byte behind the
    largest that is read. ``given`` is the path that was asked for, and ``inside`` the directory
    from there on, empty where the file stands right in it.
    """

    name: str
    path: str
    directory: str
    content: bytes
    whole: bool
    given: str = ""
    inside: str = ""


def read_sources(paths: Iterable[str]) -> list[Source]:
    """Read the specs of files, of directories and all those in them, of jars and git revisions.

    A git revision is written ``REV:PATH``, PATH from the top of the repository. What is hidden in a
    directory is left out. A file that is named twice is read once.

    Raises `SpecError` for what is not there or cannot be read, and where there are no specs.
    """
    found: dict[tuple[str, str], Source] = {}
    for path in paths:
        here = list(_read(path))
        if not here:
            raise SpecError("no *.json files here", source=path)
        for source in (replace(one, given=path) for one in here):
            key = source.directory, PurePosixPath(source.path).name
            if source.whole or key not in found:
                found[key] = source
    return list(found.values())


def _read(path: str) -> Iterator[Source]:
    revision, colon, inside = path.partition(":")
    given = Path(path)
    try:
        if given.is_dir():
            return _from_directory(given)
        if given.is_file():
            is_jar = given.suffix in _JARS
            return _from_jar(given) if is_jar else iter([_from_file(given, whole=False)])
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if colon and revision and not revision.startswith("-"):
        return _from_git(revision, inside)
    raise SpecError("no such file or directory, and no REV:PATH of git either", source=path)


def _unreadable(path: object, error: Exception) -> SpecError:
    reason = error.strerror if isinstance(error, OSError) else None
    return SpecError(f"cannot be read: {reason or error}", source=str(path))


def _from_file(path: Path, *, whole: bool, inside: str = "") -> Source:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise _unreadable(path, error) from None
    directory = os.path.realpath(path.parent)
    return Source(str(path), str(path.absolute()), directory, content, whole, inside=inside)


def _from_directory(root: Path) -> Iterator[Source]:
    for directory, inner, files in os.walk(root, onerror=_raise):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        inside = _below(Path(directory).as_posix(), root.as_posix())
        for name in sorted(files):
            if _is_spec(name):
                if not (Path(directory) / name).is_file():
                    # What is no regular file may never end, or never begin.
                    raise SpecError("no regular file", source=str(Path(directory) / name))
                yield _from_file(Path(directory) / name, whole=True, inside=inside)


def _below(directory: str, root: str) -> str:
    """Give a directory as seen from another one, "" for the same."""
    relative = posixpath.relpath(directory, root or ".")
    return "" if relative == "." else relative


def _is_spec(path: str) -> bool:
    """Whether a file is taken for a spec; a jar has other JSON in META-INF."""
    parts = PurePosixPath(path).parts
    hidden = any(part.startswith(".") or part == "META-INF" for part in parts)
    return path.endswith(".json") and not hidden


def _raise(error: OSError) -> None:
    raise _unreadable(error.filename, error)


def _from_jar(path: Path) -> Iterator[Source]:
    try:
        with zipfile.ZipFile(path) as jar:
            for entry in sorted(jar.infolist(), key=lambda entry: entry.filename):
                if _is_spec(entry.filename):
                    with jar.open(entry) as file:
                        content = file.read(LARGEST + 1)
                    yield _inside(str(path), entry.filename, content, root="")
    # What zipfile raises for damage, for encryption and for what it cannot inflate.
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
        raise _unreadable(path, error) from None


def _inside(container: str, path: str, content: bytes, *, root: str) -> Source:
    """A file of a jar or a git revision, of which ``root`` was asked for: it, or what it is in."""
    parent = PurePosixPath(path).parent
    whole = path != root
    inside = _below(str(parent), root) if whole else ""
    return Source(
        f"{container}:{path}", path, f"{container}:{parent}", content, whole, inside=inside
    )


def _from_git(revision: str, path: str) -> Iterator[Source]:
    wanted = [path] if path else []
    listed = _git(revision, ["ls-tree", "-r", "-l", "-z", "--full-tree", revision, "--", *wanted])
    blobs = {}
    for line in listed.decode("utf-8", "backslashreplace").split("\0"):
        facts, _, name = line.partition("\t")
        # Not a symbolic link, and not a module.
        if facts.startswith("100") and _is_spec(name):
            _, _, blob, size = facts.split()
            blobs[name] = blob, int(size)
    read = [blob for blob, size in blobs.values() if size <= LARGEST]
    contents = _git_blobs(revision, read)
    for name, (blob, _) in blobs.items():
        # What is too large is not read; that it is too large shows all the same.
        content = contents.get(blob, bytes(LARGEST + 1))
        yield _inside(revision, name, content, root=path)


def _git_blobs(revision: str, blobs: list[str]) -> dict[str, bytes]:
    answer = _git(revision, ["cat-file", "--batch"], "\n".join(blobs).encode())
    found = {}
    place = 0
    for blob in blobs:
        end = answer.index(b"\n", place)
        size = int(answer[place:end].split()[-1])
        found[blob] = answer[end + 1 : end + 1 + size]
        place = end + 1 + size + 1
    return found


def _git(revision: str, arguments: list[str], given: bytes = b"") -> bytes:
    command = ["git", "--no-pager", *arguments]
    try:
        done = subprocess.run(command, input=given, capture_output=True, check=True)  # noqa: S603 - no shell, and no argument that git could take for an option
    except FileNotFoundError:
        raise SpecError("git is not installed", source=revision) from None
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode("utf-8", "replace").strip()
        raise SpecError(f"git cannot read it: {reason}", source=revision) from None
    return done.stdout
