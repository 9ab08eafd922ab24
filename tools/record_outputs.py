"""Record flexwire's output, to compare it before and after a refactoring.

``python -m tools.record_outputs INPUTS OUT`` analyzes three kinds of input and writes everything
that a user sees into text files below OUT: rows of each table, ``facts.json``, ``audit.csv``, each
answer in CSV, JSON and text, standard output, standard error and exit codes, and the errors of
commands that fail. Two records that the same code makes of the same inputs are equal, so ``diff -r
BEFORE AFTER`` shows exactly the effect of a change.

INPUTS is made if it is missing. INPUTS contains the demo's capture, and a broker's log directory
and the request logs from ``tests/vectors``. Keep INPUTS for both records, because two runs of the
demo differ.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

ROOT: Final = Path(__file__).parents[1]
ROWS_SHOWN: Final = 2000
"""The maximum number of a table's rows in a record. The digest above them covers all rows."""

_SEGMENTS: Final = ROOT / "tests" / "vectors" / "log-segments"
_REQUEST_LOGS: Final = ROOT / "tests" / "vectors" / "request_logs"

_VARIES: Final = (
    # A command's times and durations, and Java's messages about this machine.
    (re.compile(r"\b\d+(\.\d+)? (ms|s|seconds|minutes)\b"), "# s"),
    (re.compile(r"\b\d{2}/\d{2}/\d{2} \d{2}:\d{2}:\d{2}\b"), "DATE"),
    (re.compile(r"run-[0-9a-f-]{8,}"), "run-#"),
    # The time of the analysis.
    (re.compile(r'"made_at_us": \d+'), '"made_at_us": "#"'),
)
_NOISE: Final = re.compile(r"WARN|log4j|Picked up|SLF4J|setLogLevel|native-hadoop")


def main() -> None:
    """Make the inputs if they are missing, and record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("inputs", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    if not given.inputs.exists():
        make_inputs(given.inputs)
    shutil.rmtree(given.out, ignore_errors=True)
    given.out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as room:
        Recorder(given.inputs.resolve(), given.out.resolve(), Path(room)).record()


def make_inputs(inputs: Path) -> None:
    """Capture the demo's traffic, and arrange the logs of ``tests/vectors`` like a broker's."""
    from tests.capture import log_vectors  # noqa: PLC0415 - only this function needs the tests

    with tempfile.TemporaryDirectory() as room:
        subprocess.run([_flexwire(), "-q", "demo", "--out", f"{room}/demo"], check=True, cwd=room)
        made = inputs.with_name(inputs.name + ".partial")
        shutil.rmtree(made, ignore_errors=True)
        (made / "capture").mkdir(parents=True)
        for path in sorted(Path(room, "demo").rglob("*.pcap*")):
            shutil.copy(path, made / "capture" / path.name)
    log_vectors.write_all(made / "logs")
    shutil.copytree(_REQUEST_LOGS, made / "request_logs")
    made.rename(inputs)


def _flexwire() -> str:
    return str(Path(sys.executable).with_name("flexwire"))


class Recorder:
    """Run the commands and write their output."""

    def __init__(self, inputs: Path, out: Path, room: Path) -> None:
        self._inputs = inputs
        self._out = out
        self._room = room

    def record(self) -> None:
        """Record all kinds of input, and errors."""
        for name, extra in self._analyses():
            given = [str(path) for path in self._given(name)]
            output = self._room / name
            self._run(f"{name}/analyze", "analyze", *given, "--out", str(output), *extra)
            self._tables(name, output / "tables")
            for path in sorted(output.rglob("*")):
                if path.suffix in {".json", ".csv"} and "tables" not in path.parts:
                    self._write(f"{name}/{path.relative_to(output)}", self._clean(path.read_text()))
            for form in ("text", "csv", "json"):
                self._run(f"{name}/answers.{form}", "answers", str(output), "--format", form)
        self._errors()

    def _analyses(self) -> Iterator[tuple[str, list[str]]]:
        every = ["--answers", "all"]
        yield "capture", every
        yield "logs", every
        yield "request_logs", [*every, "--timezone", "Europe/Berlin"]

    def _given(self, name: str) -> list[Path]:
        if name == "request_logs":
            return sorted((self._inputs / name).glob("*.log"))
        return [self._inputs / name]

    def _errors(self) -> None:
        """Record the errors for missing, damaged, empty and invalid inputs."""
        odd = self._room / "odd"
        odd.mkdir()
        (odd / "empty.pcap").touch()
        (odd / "text.pcap").write_text("not a capture\n" * 40)
        capture = min((self._inputs / "capture").iterdir())
        (odd / "cut.pcapng").write_bytes(capture.read_bytes()[:-7])
        for path in [*sorted(odd.iterdir()), odd / "missing.pcap"]:
            to = str(self._room / "out")
            self._run(f"errors/{path.name}", "analyze", str(path), "--out", to)
            self._run(f"errors/{path.name}.open", "capture", "open", str(path), "--out", to)
            self._run(f"errors/{path.name}.frame", "decode", str(path), "--frame-number", "1")
            self._run(f"errors/{path.name}.records", "records", "dump", str(path))
            self._run(f"errors/{path.name}.answers", "answers", str(path))
        self._run("errors/decode", "decode", "FetchRequest", "00ff", "-V", "12")
        self._run("errors/frame", "decode", "--frame", "000000040003000c")
        self._run("errors/explain", "explain", "MetadataResponse", "0000", "-V", "9")
        self._run("errors/version", "encode", "FetchRequest", "{}", "-V", "99")
        self._run("errors/nearest", "decode", "FechRequest", "00", "-V", "12")

    def _run(self, name: str, *command: str) -> None:
        done = subprocess.run(
            [_flexwire(), *command],
            cwd=self._room,
            env={**os.environ, "COLUMNS": "120", "TZ": "UTC", "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            check=False,
        )
        self._write(f"{name}.out", self._clean(done.stdout))
        stderr = "".join(
            line for line in done.stderr.splitlines(keepends=True) if not _NOISE.search(line)
        )
        self._write(f"{name}.err", self._clean(stderr) + f"exit status {done.returncode}\n")

    def _tables(self, name: str, tables: Path) -> None:
        found: dict[str, list[Path]] = {}
        for path in sorted(tables.rglob("*.parquet")):
            found.setdefault(str(path.parent.relative_to(tables)), []).append(path)
        for table, files in found.items():
            self._write(f"{name}/tables/{table}.rows", _rows([pq.read_table(f) for f in files]))

    def _clean(self, text: str) -> str:
        text = text.replace(str(self._room), "ROOM").replace(str(self._inputs), "INPUTS")
        for pattern, instead in _VARIES:
            text = pattern.sub(instead, text)
        return text

    def _write(self, name: str, text: str) -> None:
        path = self._out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _rows(tables: list[pa.Table]) -> str:
    """Return a table's columns and rows as text, in a fixed order."""
    types = "\n".join(f"# {field.name}: {field.type}" for field in tables[0].schema)
    lines = sorted(
        json.dumps(row, default=_text, ensure_ascii=True)
        for table in tables
        for batch in table.to_batches(max_chunksize=10_000)
        for row in batch.to_pylist()
    )
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    head = f"{types}\n# {len(lines)} rows, SHA-256 {digest}\n"
    return head + "".join(f"{line}\n" for line in lines[:ROWS_SHOWN])


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


if __name__ == "__main__":
    main()
