"""Test other projects' codecs with the vector package, and keep the results.

    python -m tools.vectors_codecs [NAME...]

The program builds the package, installs each codec below `.build/codecs`, runs its program of
`examples/codecs`, and writes `tests/vectors/codecs.json`, from which docs/codecs.md is made. If a
toolchain is missing, the codec keeps its current row. If names are given, only these codecs are
tested.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flexwire.vectors import CodecLimits, CodecResults, Outcome, read_package, run_codec
from tools.maven import ROOT
from tools.vectors_package import RELEASE
from tools.vectors_package import main as build_package

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from flexwire.vectors import Verdict

EXAMPLES = ROOT / "examples" / "codecs"
BUILT = ROOT / ".build" / "codecs"
KEPT = ROOT / "tests" / "vectors" / "codecs.json"
# A codec with an endless loop uses up the whole limit in each of its cases.
LIMITS = CodecLimits(case_seconds=2, starts=5000)


@dataclass(frozen=True, slots=True)
class Codec:
    """A library with a program that answers the test runner, and how to install both."""

    language: str
    library: str
    version: str
    program: str
    tool: str
    bring: Callable[[], list[str]]
    encodes: bool = False


def _tool(name: str) -> str:
    return shutil.which(name) or name


def _java() -> list[str]:
    from tools.broker import jars  # noqa: PLC0415 - only if Java is requested

    options = ["-Xmx512m", "-XX:+UseSerialGC", "-cp", f"{jars(RELEASE)}/*"]
    return ["java", *options, str(EXAMPLES / "java" / "Codec.java")]


def build_go(source: Path, program: Path) -> None:
    """Build the program of a Go module."""
    command = [_tool("go"), "build", "-o", str(program), "."]
    subprocess.run(command, cwd=source, check=True)


def _go() -> list[str]:
    out = BUILT / "franz"
    build_go(EXAMPLES / "go", out)
    return [str(out)]


def _rust() -> list[str]:
    # In the source directory, cargo would write a lock file with the registry's address.
    place = BUILT / "rust"
    shutil.copytree(EXAMPLES / "rust", place, dirs_exist_ok=True)
    subprocess.run([_tool("cargo"), "build", "--release", "--quiet"], cwd=place, check=True)
    # Without this, each rejection produces a backtrace, which takes longer than everything else.
    return ["env", "RUST_BACKTRACE=0", str(place / "target" / "release" / "codec")]


def _javascript() -> list[str]:
    place = BUILT / "javascript"
    shutil.copytree(EXAMPLES / "javascript", place, dirs_exist_ok=True)
    # The library requires a newer Node.js than its codecs need.
    quiet = ["--silent", "--ignore-scripts", "--omit=optional"]
    subprocess.run([_tool("npm"), "ci", *quiet], cwd=place, check=True)
    return [_tool("node"), str(place / "codec.mjs")]


def _kio() -> list[str]:
    place = BUILT / "kio"
    if not place.is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes"]
        lock = EXAMPLES / "python" / "kio.lock"
        subprocess.run([*command, "--target", str(place), "-r", str(lock)], check=True)
    program = str(EXAMPLES / "python" / "kio_codec.py")
    return ["env", f"PYTHONPATH={place}", sys.executable, program]


def _kafka_python() -> list[str]:
    return [sys.executable, "-W", "ignore", str(EXAMPLES / "python" / "kafka_python_codec.py")]


CODECS = {
    "java": Codec("Java", "kafka-clients", RELEASE, "java/Codec.java", "java", _java, True),
    "go": Codec("Go", "franz-go kmsg", "1.15.0", "go/main.go", "go", _go),
    "rust": Codec("Rust", "kafka-protocol", "0.18.0", "rust/src/main.rs", "cargo", _rust),
    "javascript": Codec(
        "JavaScript",
        "@platformatic/kafka",
        "2.12.1",
        "javascript/codec.mjs",
        "node",
        _javascript,
    ),
    "kio": Codec("Python", "kio", "0.6.5", "python/kio_codec.py", sys.executable, _kio),
    "kafka-python": Codec(
        "Python",
        "kafka-python",
        "3.0.12",
        "python/kafka_python_codec.py",
        sys.executable,
        _kafka_python,
    ),
}


def tested(codec: Codec, package: Path) -> dict[str, Any]:
    """Return the row of a codec: its counts, and its deviations by kind of case."""
    command = codec.bring()
    results = run_codec(command, read_package(package), limits=LIMITS, encode=codec.encodes)
    return {
        "language": codec.language,
        "library": codec.library,
        "version": codec.version,
        "program": codec.program,
        "kafka": RELEASE,
        "counts": results.to_json()["counts"],
        "kinds": kinds(results),
    }


def kinds(results: CodecResults) -> list[dict[str, Any]]:
    """Return the deviations and remarks of a run, counted by kind of case and by outcome."""
    found: Counter[tuple[str, Outcome, str]] = Counter()
    first: dict[tuple[str, Outcome, str], Verdict] = {}
    for verdict in (*results.deviations, *results.remarks):
        key = (_kind(verdict), verdict.outcome, _fault(verdict))
        found[key] += 1
        first.setdefault(key, verdict)
    rows = sorted(found.items(), key=lambda one: (not one[0][1].is_deviation, -one[1], one[0]))
    return [
        {
            "kind": kind,
            "outcome": outcome.value,
            "fault": fault,
            "cases": count,
            "first": first[kind, outcome, fault].vector.case,
        }
        for (kind, outcome, fault), count in rows
    ]


def _kind(verdict: Verdict) -> str:
    """Return the kind of a case: for ``Fetch…/13/hostile/cut-0`` it is ``hostile/cut``."""
    _, _, last = verdict.vector.case.partition("/")
    name = last.partition("/")[2] or "records"
    stem, _, turn = name.rpartition("-")
    return stem if turn.isdigit() else name


def _fault(verdict: Verdict) -> str:
    """Return what happened to the codec's process, without its output, or an empty string."""
    words = verdict.reason.partition(";")[0]
    is_fault = words.startswith(("the codec exited", "the codec was terminated", "no answer"))
    return words if verdict.outcome is Outcome.FAILED and is_fault else ""


def main(names: list[str]) -> None:
    """Test the codecs and write the results."""
    unknown = [name for name in names if name not in CODECS]
    if unknown:
        sys.exit(f"error: no codec {unknown[0]}; there are {', '.join(CODECS)}")
    BUILT.mkdir(parents=True, exist_ok=True)
    build_package([str(BUILT)])
    for name in names or CODECS:
        codec = CODECS[name]
        if shutil.which(codec.tool) is None:
            sys.stderr.write(f"flexwire: {name} is left out: there is no {codec.tool}\n")
            continue
        sys.stderr.write(f"flexwire: testing {codec.library} {codec.version}\n")
        row = tested(codec, BUILT / "flexwire-vectors")
        kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
        kept[name] = row
        found = {one: kept[one] for one in CODECS if one in kept}
        KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    from tools.pages.codecs import files  # noqa: PLC0415 - the module reads the file that was just written
    from tools.pages.files import write_files  # noqa: PLC0415 - see above

    write_files(files())


if __name__ == "__main__":
    main(sys.argv[1:])
