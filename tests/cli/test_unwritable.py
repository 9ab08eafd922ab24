"""A command that may not write names the file, exits with 1, and changes nothing."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.atomic_files import write_together
from flexwire.cli.app import app
from flexwire.records import Record
from tests.capture.made_logs import TIME, MadeSegment
from tests.capture.traffic import packet, pcap
from tests.cli.test_terminal import _Run, commands
from tests.cli.unwritable import obeying_modes
from tests.codec_vectors.kept import FEW
from tests.each import each

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.own_process

# Every command that writes files, except those that need Spark. OUT and the directories in HALF are
# not writable.
WRITING = [
    "schema docs SPECS --out OUT",
    "schema docs SPECS --out OUT/new",
    "schema error-tags SPECS --out OUT",
    "schema error-tags SPECS --out OUT/new/newer",
    "schema docs SPECS --out HALF",
    "schema import SPECS --release 9.9.9 --out HALF",
    "schema bench SPECS SPECS --out OUT/bench.html",
    "generate HeartbeatRequest --version 4 --corpus OUT",
    "generate HeartbeatRequest --version 4 --corpus OUT/new",
    "capture open CAPTURE --keys KEYS --out OUT/empty",
    "capture open CAPTURE --keys KEYS --out OUT/new",
    "tap --upstream 127.0.0.1:1 --listen 127.0.0.1:0 --out OUT",
    "tap --upstream 127.0.0.1:1 --listen 127.0.0.1:0 --out OUT/new",
    "tap --upstream 127.0.0.1:1 --listen ssl://127.0.0.1:0 --throwaway-ca OUT --out ELSEWHERE",
]
# Commands that write no file work even if input, working directory and home are read-only.
READING = [
    "schema resolve MetadataRequest --version 0",
    "schema errors 3",
    "completion bash",
    "schema lint SPECS",
    "schema list Fetch",
    "schema cost --vectors VECTORS --specs SPECS --against SPECS",
    "schema breaking SPECS --against SPECS",
    "schema bench SPECS SPECS",
    "generate HeartbeatRequest --version 4",
    "decode MetadataRequest 00000000 --version 0",
    'encode MetadataRequest {"topics":null} --version 1',
    "explain MetadataRequest 00000000 --version 0",
    "records dump LOG --deep",
    "who CAPTURE",
    "vectors check KEPT --decode-only --case */full --codec cat",
]
# Commands that need Spark, a broker, a terminal or a client program, or whose purpose is to write.
LEFT_OUT = {"analyze", "answers", "demo", "call", "conform", "mcp", "view", "warmup"}
LEFT_OUT |= {"tables compact", "tables retain", "tables undo", "tables vacuum"}

FIELDS: list[dict[str, Any]] = [{"name": "ErrorCode", "type": "int16", "versions": "0+"}]


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Make the commands' input, the working directory and the home directory, all read-only."""
    names = {"SPECS": "specs", "OUT": "out", "ELSEWHERE": "elsewhere", "LOG": "log/orders-0"}
    found = {name: tmp_path / path for name, path in names.items()}
    found |= {"CAPTURE": tmp_path / "log" / "a.pcap", "KEYS": tmp_path / "log" / "keys"}
    found["VECTORS"] = tmp_path / "log" / "vectors.jsonl"
    for name in ("SPECS", "OUT", "LOG"):
        found[name].mkdir(parents=True)
    for kind in ("request", "response"):
        name = f"Foo{kind.title()}"
        spec = {"apiKey": 0, "type": kind, "name": name, "validVersions": "0-1"}
        text = json.dumps({**spec, "flexibleVersions": "1+", "fields": FIELDS})
        (found["SPECS"] / f"{name}.json").write_text(text, encoding="utf-8")
    segment = MadeSegment(0)
    segment.add([Record(0, TIME, b"key", b"value", [])])
    segment.write(found["LOG"])
    found["CAPTURE"].write_bytes(pcap([packet()]))
    found["KEYS"].touch()
    vector = {"message": "FooRequest", "version": 0, "hex": "0000"}
    found["VECTORS"].write_text(json.dumps(vector), encoding="utf-8")
    (found["OUT"] / "kept").write_text("as it was", encoding="utf-8")
    found["KEPT"] = FEW
    home = tmp_path / "home"
    home.mkdir()
    (found["OUT"] / "empty").mkdir()
    # The file is in OUT, so that an error always names OUT.
    found["HALF"] = found["OUT"] / "half"
    inner = [found["HALF"] / name for name in ("api", "metadata")]
    for directory in inner:
        directory.mkdir(parents=True)
    for directory in (
        *found.values(),
        *inner,
        found["OUT"] / "empty",
        home,
        tmp_path / "log",
        tmp_path,
    ):
        if directory.is_dir() and directory != FEW:
            directory.chmod(0o555)
    found["HALF"].chmod(0o755)
    for variable in ("HOME", "XDG_CACHE_HOME", "TMPDIR"):
        monkeypatch.setenv(variable, str(home))
    monkeypatch.chdir(home)
    return found


def below(place: Path) -> dict[str, bytes | None]:
    """Return everything below a directory: the bytes of files, and None for a directory."""
    return {
        str(path.relative_to(place)): path.read_bytes() if path.is_file() else None
        for path in place.rglob("*")
    }


def told(line: str, places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> _Run:
    for name, place in places.items():
        line = line.replace(name, str(place))
    with obeying_modes():
        return _Run(tuple(line.split()), monkeypatch)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("line", WRITING)
def test_what_cannot_be_written_is_named_and_nothing_is_changed(
    line: str, places: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = below(tmp_path)
    run = told(line, places, monkeypatch)
    assert run.code == 1
    [error] = run.err.splitlines()
    assert str(places["OUT"]) in error
    assert error.endswith(": Permission denied")
    assert "Errno" not in error
    assert run.out == ""
    assert below(tmp_path) == before


@pytest.mark.long
@pytest.mark.parametrize("line", READING)
def test_what_writes_nothing_needs_no_place_to_write(
    line: str, places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = told(line, places, monkeypatch)
    assert (run.code, run.err) == (0, "")
    assert run.out


@pytest.mark.long
def test_every_command_is_here() -> None:
    here = {" ".join(words) for words, _ in commands(app)} - LEFT_OUT
    tried = {name for name in here for line in (*WRITING, *READING) if line.startswith(f"{name} ")}
    assert tried == here


BEFORE: dict[str, bytes | None] = {"a": b"old", "b": None, "b/kept": b"kept"}
NEW = {"a": b"new", "c/d/e": b"new", "b/f": b"new"}


@each("last", ["b/f", "a/f", "b/g/h"])
def test_files_are_written_together_or_not_at_all(last: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "b").mkdir(parents=True)
    (root / "a").write_bytes(b"old")
    (root / "b" / "kept").write_bytes(b"kept")
    (root / "b").chmod(0o555)
    with obeying_modes(), pytest.raises(OSError, match=last.split("/", maxsplit=1)[0]) as found:
        write_together(root, {"a": b"new", "c/d/e": b"new", last: b"new"})
    assert ".flexwire-" not in str(found.value)
    assert below(root) == BEFORE
    (root / "b").chmod(0o755)
    write_together(root, NEW)
    assert {name: data for name, data in below(root).items() if data} == NEW | {"b/kept": b"kept"}
    shutil.rmtree(root)
