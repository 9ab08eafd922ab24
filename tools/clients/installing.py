"""How each kind of client is installed once below `.build/clients`, and how its program runs.

An installer gets the name of a new directory and fills the directory. The installer is not called
again, because the directory's name encodes everything that determines its content. If a tool or a
registry is missing, the error names it, and no incomplete client is used.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

from tools.environment import ROOT, say
from tools.maven import Jars

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Path(__file__).parent
KEPT = ROOT / ".build" / "clients"
# The release that the trial's program is compiled with. The program looks for classes of later
# releases at run time.
OLDEST_JAVA = "0.10.1.1"
# Even a slow connection can download a client's 25 MB in this time.
MOST_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Program:
    """A command that accepts the arguments of `steps.Asked`, and its environment."""

    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()


class Way(Protocol):
    """How a client is installed."""

    def bring(self) -> Program:
        """Install the client unless it exists; raise `SystemExit` with the reason if this fails."""


@dataclass(frozen=True, slots=True)
class Java:
    """Kafka's own client, of one release, and the program that uses it.

    ``against`` is the release that the program is compiled with.
    """

    version: str
    program: str = "Trial"
    against: str = OLDEST_JAVA

    def bring(self) -> Program:
        """Download the jars and compile the program."""
        from flexwire.spark.java import find_java  # noqa: PLC0415 - only if Java is asked for

        java = str(find_java() / "bin" / "java")
        source = HERE / "java" / f"{self.program}.java"
        with _made("java", source.read_bytes()) as place:
            if place:
                given = ("--release", "8", "-nowarn", "-d", str(place), str(source))
                compiler = (java, "-m", "jdk.compiler/com.sun.tools.javac.Main")
                jars = ":".join(str(jar) for jar in _jars(self.against).iterdir())
                _run(*compiler, "-cp", jars, *given)
        classes = _place("java", source.read_bytes())
        quiet = ("-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
        log = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        path = f"{_jars(self.version)}/*:{classes}"
        return Program((java, *quiet, log, "-cp", path, self.program))


@dataclass(frozen=True, slots=True)
class Python:
    """A client in Python, in its own directory."""

    lock: str
    module: str

    def bring(self) -> Program:
        """Install what the lock file pins, for the Python that runs this."""
        lock = HERE / "locks" / f"{self.lock}.lock"
        decides = lock.read_bytes() + sys.version.encode()
        with _made(self.lock, decides) as place:
            if place:
                _pip(lock, ("--target", str(place)))
        # This Python's other packages are not visible: they include another kafka-python.
        python = str(Path(sys.executable).resolve())
        path = f"{ROOT}:{_place(self.lock, decides)}"
        return Program((python, "-S", "-m", self.module), (("PYTHONPATH", path),))


@dataclass(frozen=True, slots=True)
class RdKafka:
    """librdkafka, from a wheel of confluent-kafka for one version of Python and one system.

    ``module`` is the program that uses the library.

    No Python code in the wheel runs, so the wheel may be for a Python that this machine does not
    have.
    """

    version: str
    python: str
    abi: str
    platform: str
    module: str = "tools.clients.rdkafka"

    def bring(self) -> Program:
        """Unpack the wheel, and find the library in it."""
        lock = HERE / "locks" / f"confluent-kafka-{self.version}.lock"
        name = f"librdkafka-{self.version}"
        with _made(name, lock.read_bytes()) as place:
            if place:
                whose = ("--platform", self.platform, "--python-version", self.python)
                which = ("--implementation", "cp", "--abi", self.abi, "--only-binary=:all:")
                _pip(lock, (*whose, *which, "--target", str(place)))
        (library,) = _place(name, lock.read_bytes()).rglob("librdkafka*.so.1")
        command = (sys.executable, "-m", self.module)
        # Old releases do not indicate where the rest of the wheel is.
        said = {"LIBRDKAFKA": library, "LD_LIBRARY_PATH": library.parent, "PYTHONPATH": ROOT}
        return Program(command, tuple((key, str(value)) for key, value in said.items()))


@dataclass(frozen=True, slots=True)
class Go:
    """A client in Go: the folder of its program, and its module file."""

    folder: str
    modules: str = "go.mod"

    def bring(self) -> Program:
        """Compile the program."""
        folder = HERE / self.folder
        pins = (folder / self.modules, (folder / self.modules).with_suffix(".sum"))
        decides = b"".join(one.read_bytes() for one in (*sorted(folder.glob("*.go")), *pins))
        name = f"{self.folder}-{self.modules.removesuffix('.mod')}"
        with _made(name, decides) as place:
            if place:
                place.mkdir()
                build = ("build", f"-modfile={self.modules}", "-mod=readonly", "-buildvcs=false")
                _run(_tool("go"), *build, "-o", str(place / "client"), ".", folder=folder)
        return Program((str(_place(name, decides) / "client"),))


@dataclass(frozen=True, slots=True)
class Node:
    """A client in JavaScript: the folder of its program, with its lock file."""

    folder: str

    def bring(self) -> Program:
        """Install what the lock file pins, with npm."""
        names = ("main.js", "package.json", "package-lock.json")
        sources = [HERE / self.folder / name for name in names]
        decides = b"".join(one.read_bytes() for one in sources)
        with _made(self.folder, decides) as place:
            if place:
                place.mkdir()
                for one in sources:
                    shutil.copy(one, place)
                quiet = ("--silent", "--ignore-scripts", "--omit=optional")
                _run(_tool("npm"), "ci", *quiet, folder=place)
        return Program((_tool("node"), str(_place(self.folder, decides) / "main.js")))


def _jars(version: str) -> Path:
    wanted = (f"org.apache.kafka:kafka-clients:{version}", "org.slf4j:slf4j-simple:1.7.36")
    return Jars(f"kafka-clients-{version}", wanted).bring()


def _pip(lock: Path, more: Sequence[str]) -> None:
    options = ("--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", *more)
    _run(sys.executable, "-m", "pip", "install", *options, "--require-hashes", "-r", str(lock))


def _place(name: str, decides: bytes) -> Path:
    return KEPT / f"{name}-{hashlib.sha256(decides).hexdigest()[:12]}"


@contextlib.contextmanager
def _made(name: str, decides: bytes) -> Iterator[Path | None]:
    """Yield a directory to fill, which then appears as a whole; yield None if it exists."""
    KEPT.mkdir(parents=True, exist_ok=True)
    place = _place(name, decides)
    with KEPT.joinpath("lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if place.is_dir():
            yield None
            return
        say(f"bringing {name}")
        making = place.with_suffix(".making")
        shutil.rmtree(making, ignore_errors=True)
        yield making
        making.rename(place)


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        _give_up(f"there is no {name} on the path")
    return found


def _run(*command: str, folder: Path = ROOT) -> None:
    unwanted = {"PYTHONPATH", "PYTHONHOME", "GOFLAGS"}
    environment = {key: value for key, value in os.environ.items() if key not in unwanted}
    try:
        answer = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=MOST_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        _give_up(f"{Path(command[0]).name} took more than {MOST_SECONDS} s")
    if answer.returncode:
        _give_up(f"{' '.join(command[:4])} … said:\n{(answer.stdout + answer.stderr)[-2000:]}")


def _give_up(why: str) -> NoReturn:
    sys.exit(
        f"error: a client cannot be brought: {why}\n"
        "This needs Maven Central, PyPI, the Go module proxy and npm's registry once; afterwards "
        "the clients are kept in .build/clients."
    )
