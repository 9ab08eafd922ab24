"""`records dump --dialect` reads intact and damaged logs in KIP-82's own format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.records import Record, Typed, encode_batch
from flexwire.records.headers import Headers
from flexwire.records.kip82 import Kip82Message, encode_message_set
from flexwire.records.typed import TypedDialect
from tests.cli.test_messages import Run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(capsys, monkeypatch)


def _headers(dialect: TypedDialect = TypedDialect.DOCUMENT) -> Headers:
    headers = Headers(dialect=dialect)
    headers.put("user", Typed("long", 7))
    return headers


def _rows(run: Run, *arguments: str) -> list[dict[str, Any]]:
    told = run("records", "dump", "--format", "json", *arguments).out
    return [json.loads(line) for line in told.splitlines()][1:]


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_messages_are_shown_with_their_typed_headers(
    run: Run, tmp_path: Path, compression: str
) -> None:
    log = tmp_path / "00000000000000000000.log"
    older = encode_batch([Record(0, 5, b"old", None)], magic=1)
    told = [Kip82Message(one, 5 + one, b"k", b"v%d" % one, _headers()) for one in (1, 2, 3)]
    log.write_bytes(older + encode_message_set(told, compression=compression))
    rows = _rows(run, str(log), "--dialect", "kip82")
    assert run.code == 0
    assert [(one["offset"], one["value"]) for one in rows] == [
        (0, None),
        (1, "v1"),
        (2, "v2"),
        (3, "v3"),
    ]
    header = {"key": "user", "type": "long", "value": 7}
    assert [one["headers"] for one in rows] == [[], [header], [header], [header]]
    assert len(_rows(run, str(log), "--dialect", "kip-82", "--offsets", "2-")) == 2
    assert "header user (long)" in run("records", "dump", str(log), "--dialect", "kip82").out


def test_damage_is_found_and_what_follows_is_shown(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "00000000000000000000.log"
    sets = [encode_message_set([Kip82Message(at, 5, b"k", b"v", _headers())]) for at in range(3)]
    broken = bytearray(sets[1])
    broken[-1] ^= 1
    log.write_bytes(sets[0] + bytes(broken) + sets[2] + sets[0][:-1])
    rows = _rows(run, str(log), "--dialect", "kip82")
    assert run.code == 100
    assert [one["type"] for one in rows] == ["record", "finding", "record", "finding"]
    assert (rows[1]["position"], rows[3]["size"]) == (len(sets[0]), len(sets[0]) - 1)


def test_what_is_of_kafka_s_own_logs_is_refused(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(b"")
    ran = run("records", "dump", str(log), "--dialect", "kip82", "--headers", "connect")
    assert ran.code == 2
    assert "leave out --decode, --release and --headers" in ran.err
    assert _rows(run, str(log), "--dialect", "kip82") == []


def test_headers_of_the_other_dialect_are_a_finding(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "00000000000000000000.log"
    earlier = Kip82Message(0, 5, b"k", b"v", Headers(dialect=TypedDialect.EARLIER))
    earlier.headers.put("gone", Typed("null"))
    log.write_bytes(encode_message_set([earlier]))
    [row] = _rows(run, str(log), "--dialect", "kip-82-earlier")
    assert row["headers"] == [{"key": "gone", "type": "null", "value": None}]
    row, found = _rows(run, str(log), "--dialect", "kip82")
    assert (row["value"], row["headers"], run.code) == ("v", [], 100)
    assert "offset 0: " in found["reason"]
