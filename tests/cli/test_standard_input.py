"""``-`` means standard input for every file that a command reads."""

from __future__ import annotations

import gzip
import io
import json
import ssl
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click
import pytest

from flexwire.cli import main, terminal
from flexwire.cli.app import app
from flexwire.cli.standard_input import input_name, segment_name, spec_name
from flexwire.errors import AnalysisError
from tests.capture.log_vectors import BASE, write_all
from tests.capture.traffic import request, response
from tests.cli.test_docs import all_commands
from tests.protocol.payloads import make
from tests.tls import Authority
from tests.tls_streams import capture, contexts, converse, packets

if TYPE_CHECKING:
    from collections.abc import Iterator

OF_A_TAP = "the tap runs on, and reads it again when it is told to"
DIRECTORY = "a directory"
# Parameters for a file, directory or data that cannot be standard input, with the reason.
WITHOUT = {
    "--catalog": DIRECTORY,
    "--out": DIRECTORY,
    "--corpus": DIRECTORY,
    "--config": "what it says of paths is meant from its directory",
    "--capture": "what analyze wrote, which is a directory",
    "root": DIRECTORY,
    "capture": "a screen has its keys from standard input",
    "out": "what analyze wrote, which is a directory",
    "analysis": "a name, of a directory in OUT",
    "names": "names of answers",
    "package": DIRECTORY,
    "address": "a broker's address",
    "message": "a message's name",
    "name": "a part of a name",
    "text": "an error's code or name",
    "shell": "a shell's name",
    "--listen-certificate": OF_A_TAP,
    "--listen-key": OF_A_TAP,
    "--listen-key-password-file": OF_A_TAP,
    "--listen-ca": OF_A_TAP,
    "--fault-file": "a list that a tap is started with, which then runs on",
    "--reset-plan": "a file that is written",
    "--throwaway-ca": "a file that is written",
    "--html": "a file that is written",
    "--badge": "a file that is written",
    "--resume": "a file that is read and then written on",
    "--upstream-ca": OF_A_TAP,
    "--upstream-certificate": OF_A_TAP,
    "--upstream-key": OF_A_TAP,
    "--upstream-key-password-file": OF_A_TAP,
}
SPEC: dict[str, Any] = {
    "name": "PingRequest",
    "type": "request",
    "apiKey": 999,
    "validVersions": "0-1",
    "flexibleVersions": "1+",
    "fields": [{"name": "Text", "type": "string", "versions": "0+", "about": "What to say."}],
}


class Ran:
    """Run a command in this process with the given bytes as standard input, and keep its output."""

    def __init__(self, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.capsys = capsys
        self.patch = patch

    def __call__(
        self, *given: object, stdin: bytes | io.BytesIO | None = None
    ) -> tuple[int, str, str]:
        buffer = io.BytesIO(stdin) if isinstance(stdin, bytes) else stdin
        self.patch.setattr(sys, "stdin", None if stdin is None else SimpleNamespace(buffer=buffer))
        self.patch.setattr(sys, "argv", ["flexwire", *map(str, given)])
        with pytest.raises(SystemExit) as caught:
            main()
        return (int(caught.value.code or 0), *self.capsys.readouterr())


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ran:
    return Ran(capsys, monkeypatch)


@pytest.fixture(autouse=True)
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """No command leaves a copy of standard input behind."""
    place = tmp_path / "private"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setattr(terminal, "_SHOWN_AS", {})
    yield place
    assert not list(place.iterdir())


def test_every_file_that_a_command_reads_can_be_standard_input() -> None:
    left = set(WITHOUT)
    for name, command in all_commands(app, "flexwire"):
        if isinstance(command, click.Group):
            continue
        taken: frozenset[str] = getattr(command.callback, "standard_input", frozenset())
        assert taken <= {one.name for one in command.params}, name
        for one in command.params:
            told = one.opts[-1]
            is_file = (
                isinstance(one, click.Argument)
                or isinstance(one.type, click.Path)
                or (one.metavar or "") in {"FILE", "PATH", "DIR", "DATA", "OLD", "NEW", "ANALYSIS"}
            )
            if is_file:
                assert (one.name in taken) != (told in WITHOUT), f"{name} {told}"
                left.discard(told)
    assert not left


def test_specs(run: Ran, tmp_path: Path) -> None:
    path, data = tmp_path / "PingRequest.json", json.dumps(SPEC).encode()
    path.write_bytes(data)
    for given in (
        ["schema", "lint", "SPECS", "--use", "ALL"],
        ["schema", "resolve", "PingRequest", "--version", "1", "--specs", "SPECS"],
        ["decode", "PingRequest", "0x00026869", "--version", "0", "--specs", "SPECS"],
        ["explain", "PingRequest", "0x00026869", "--version", "0", "--specs", "SPECS"],
        ["encode", "PingRequest", '{"text": "hi"}', "--version", "0", "--specs", "SPECS"],
    ):
        of_file = run(*[one.replace("SPECS", str(path)) for one in given])
        told = run(*[one.replace("SPECS", "-") for one in given], stdin=data)
        assert told == (of_file[0], of_file[1].replace(str(path), "standard input"), of_file[2])
        assert of_file[0] in {0, 100}, of_file


def test_specs_on_both_sides_of_a_change(run: Ran, tmp_path: Path) -> None:
    path = tmp_path / "PingRequest.json"
    path.write_text(json.dumps(SPEC), encoding="utf-8")
    wider = {**SPEC, "validVersions": "0-2"}
    gone = {**SPEC, "fields": []}
    code, _, _ = run("schema", "breaking", "-", "--against", path, stdin=json.dumps(wider).encode())
    assert code == 0
    code, out, _ = run(
        "schema", "breaking", "-", "--against", path, stdin=json.dumps(gone).encode()
    )
    assert code == 100
    assert "standard input" in out
    code, _, _ = run("schema", "breaking", path, "--against", "-", stdin=json.dumps(gone).encode())
    assert code == 100


@pytest.mark.slow
def test_specs_on_either_side_of_a_review(run: Ran, tmp_path: Path) -> None:
    path = tmp_path / "PingRequest.json"
    path.write_text(json.dumps(SPEC), encoding="utf-8")
    wider = json.dumps({**SPEC, "validVersions": "0-2"}).encode()
    code, out, _ = run("schema", "bench", path, "-", stdin=wider)
    assert (code, "| PingRequest | 0-1 → 0-2 |" in out) == (0, True)
    code, out, _ = run("schema", "bench", "-", path, stdin=wider)
    assert (code, "| PingRequest | 0-2 → 0-1 |" in out) == (100, True)


def test_a_catalog_and_tagged_errors_and_a_guide_of_a_spec(run: Ran, tmp_path: Path) -> None:
    data = json.dumps(SPEC).encode()
    said = run("schema", "docs", "-", "--out", tmp_path / "guide", stdin=data)
    assert said[0] == 0, said
    assert "PingRequest" in "".join(
        one.read_text("utf-8") for one in (tmp_path / "guide").rglob("*.html")
    )
    answer = {**SPEC, "name": "PingResponse", "type": "response"}
    answer["fields"] = [
        {"name": "ErrorCode", "type": "int16", "versions": "0+", "about": "The error code."}
    ]
    data = json.dumps(answer).encode()
    said = run("schema", "error-tags", "-", "--out", tmp_path / "tagged", stdin=data)
    assert said[0] == 0, said
    assert [one.name for one in (tmp_path / "tagged").iterdir()] == ["PingResponse.json"]


def test_segments(run: Ran, tmp_path: Path) -> None:
    write_all(tmp_path)
    # Only one log is used, because a log is compared with the index next to it.
    path = (tmp_path / "orders-none-0" / f"{BASE}.log").rename(tmp_path / f"{BASE}.log")
    code, out, _ = run("records", "dump", path, "--deep", "--format", "json")
    told = run("records", "dump", "-", "--deep", "--format", "json", stdin=path.read_bytes())
    batches = [json.loads(one) for one in told[1].splitlines()]
    wanted = [json.loads(one) for one in out.splitlines()]
    assert (code, len(wanted)) == (0, len(batches))
    for one in (*batches, *wanted):
        one.pop("file")
    assert (told[0], batches) == (code, wanted)
    assert str(tmp_path) not in told[1]


def test_captures_and_key_logs(run: Ran, tmp_path: Path) -> None:
    said = [("request", request(1)), ("response", response(1))]
    keys = tmp_path / "keys.log"
    authority = Authority(tmp_path / "authority")
    one, _ = converse(*contexts(authority, keys, ssl.TLSVersion.TLSv1_3), said)
    path = capture(tmp_path / "tls.pcapng", packets(one.flights))
    packed = gzip.compress(path.read_bytes())
    told = []
    for number, (given, key, stdin) in enumerate(
        [
            (path, keys, None),
            ("-", keys, path.read_bytes()),
            ("-", keys, packed),
            (path, "-", keys.read_bytes()),
        ]
    ):
        out = tmp_path / f"out{number}"
        ran = run("capture", "open", given, "--keys", key, "--out", out, stdin=stdin)
        told.append((ran[0], ran[1].replace(str(out), "OUT"), ran[2]))
    assert told == [told[0]] * 4
    assert told[0][0] == 0
    assert "1 opened" in told[0][1]
    both = run("capture", "open", "-", "--keys", "-", "--out", tmp_path / "none", stdin=b"")
    assert both[0] == 2
    assert "standard input can be read only once, so specify - only once" in both[2]


def test_vectors_of_a_cost(run: Ran, tmp_path: Path) -> None:
    line = {"message": "HeartbeatRequest", "version": 4}
    line["hex"] = make("HeartbeatRequest").encode(4).hex()
    path = tmp_path / "vectors.jsonl"
    path.write_text(json.dumps(line), encoding="utf-8")
    given = ["schema", "cost", "--encoding", "kafka", "--against-encoding", "fixed", "--vectors"]
    told = run(*given, "-", stdin=path.read_bytes())
    assert told == run(*given, path)
    assert told[0] == 0


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (bytes.fromhex("0a0d0d0a"), "standard-input.pcapng"),
        (bytes.fromhex("d4c3b2a1"), "standard-input.pcapng"),
        (bytes.fromhex("4d3cb2a1"), "standard-input.pcapng"),
        (bytes.fromhex("a1b2c3d4"), "standard-input.pcapng"),
        (gzip.compress(bytes.fromhex("a1b23c4d"), mtime=0), "standard-input.pcapng.gz"),
        (b"[2026-11-23 10:00:00,000] DEBUG Completed request", "kafka-request.log"),
        (gzip.compress(b"[2026-11-23 10:00:00,000]", mtime=0), "kafka-request.log.gz"),
        (b"\x1f\x8bdamaged", "kafka-request.log.gz"),
        (
            (517).to_bytes(8, "big") + bytes(8) + b"\x02" + bytes(60),
            f"standard-input-0/{517:020d}.log",
        ),
        ((-5).to_bytes(8, "big", signed=True) + bytes(60), f"standard-input-0/{0:020d}.log"),
    ],
    ids=lambda one: one if isinstance(one, str) else one[:8].hex(),
)
def test_what_is_analyzed_is_told_by_its_first_bytes(made: bytes, name: str) -> None:
    assert input_name(made) == name


def test_an_analysis_of_nothing_is_refused(run: Ran, tmp_path: Path) -> None:
    told = run("analyze", "-", "--out", tmp_path / "out", stdin=b"")
    assert told == (1, "", "InputError: standard input is empty\n")


def test_an_analysis_has_all_of_it_under_its_name_and_nothing_is_left(
    run: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, private: Path
) -> None:
    data = bytes.fromhex("0a0d0d0a") + bytes(range(256)) * 4096
    seen: list[tuple[str, bytes, int]] = []

    def analyze(paths: tuple[str, ...], *_: object, **__: object) -> None:
        other, path = map(Path, paths)
        assert (str(other), path.is_relative_to(private)) == ("captures", True)
        seen.append((path.name, path.read_bytes(), path.parent.stat().st_mode & 0o077))
        raise AnalysisError(f"cannot read {path}")

    monkeypatch.setattr("flexwire.spark.analyze.analyze", analyze)
    told = run("analyze", "captures", "-", "--out", tmp_path / "out", stdin=data)
    assert seen == [("standard-input.pcapng", data, 0)]
    assert told == (1, "", "AnalysisError: cannot read standard input\n")


def test_names_of_specs_and_segments() -> None:
    assert (
        spec_name(b'// A comment\n{"apiKey": 3, "name": "MetadataRequest"}')
        == "MetadataRequest.json"
    )
    assert spec_name(b'{"name": "../../etc/passwd"}') == "standard-input.json"
    assert spec_name(b"PK\x03\x04") == "standard-input.jar"
    assert segment_name(b"") == f"standard-input-0/{0:020d}.log"


@pytest.mark.parametrize(
    "given",
    [
        ["schema", "lint", "-"],
        ["records", "dump", "-"],
        ["decode", "FetchRequest", "-", "--version", "4"],
    ],
)
def test_a_closed_standard_input_is_an_error(run: Ran, given: list[str]) -> None:
    assert run(*given) == (1, "", "InputError: standard input is closed\n")


def test_a_terminal_is_told_that_its_input_is_awaited(run: Ran) -> None:
    class Typed(io.BytesIO):
        def isatty(self) -> bool:
            return True

    _, _, told = run("schema", "lint", "-", stdin=Typed(b"{}"))
    assert told.startswith("reading standard input until it ends (Ctrl-D)\n")
