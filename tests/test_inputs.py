"""An input file's name, its content and its first bytes indicate the same type."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from flexwire.errors import CaptureError
from flexwire.inputs import LOOKED_AT, AnalysisFileKind, input_sources, kind_by_bytes, kind_by_name
from tests.capture.interleaved import CLEAN, write_capture

if TYPE_CHECKING:
    from pathlib import Path

CAPTURE, LOG, BROKER_LOG = (
    AnalysisFileKind.CAPTURE,
    AnalysisFileKind.LOG,
    AnalysisFileKind.BROKER_LOG,
)
LINE = (
    b"[2026-11-23 10:00:00,000] DEBUG Completed request:"
    b'{"isForwarded":false} (kafka.request.logger)\n'
)
NAMES = [
    ("tap-00001.pcapng", CAPTURE),
    ("OLD.PCAP.GZ", CAPTURE),
    ("00000000000000000042.log", LOG),
    ("00000000000000000042.timeindex", LOG),
    ("00000000000000000042.log.deleted", LOG),
    ("kafka-request.log", BROKER_LOG),
    ("kafka-request.log.2026-11-22-10.gz", BROKER_LOG),
    ("pod-7_server.log", BROKER_LOG),
    ("notes.txt", None),
    ("42.log", None),
    ("", None),
]


@pytest.mark.parametrize(("name", "kind"), NAMES)
def test_a_name_says_what_a_file_is(name: str, kind: AnalysisFileKind | None) -> None:
    assert kind_by_name(name) is kind


def test_first_bytes_say_the_same_as_names(tmp_path: Path) -> None:
    write_capture(tmp_path, 1, CLEAN)
    captures = [path for path in tmp_path.iterdir() if kind_by_name(path.name) is CAPTURE]
    assert captures
    for path in captures:
        data = path.read_bytes()
        assert kind_by_bytes(data[:LOOKED_AT]) is CAPTURE
        assert kind_by_bytes(gzip.compress(data)[:LOOKED_AT]) is CAPTURE
    batch = bytes(16) + b"\x02" + bytes(44)
    assert kind_by_bytes(batch) is LOG
    for line in (LINE, gzip.compress(LINE), b"", b"\x1f\x8bdamaged"):
        assert kind_by_bytes(line) is BROKER_LOG


def test_paths_give_each_file_for_what_it_is(tmp_path: Path) -> None:
    logs, captures = tmp_path / "orders-0", tmp_path / "captures"
    logs.mkdir()
    captures.mkdir()
    (logs / "00000000000000000000.log").write_bytes(b"")
    (logs / "notes.txt").write_bytes(b"")
    write_capture(captures, 1, CLEAN)
    found = input_sources([logs, captures])
    assert [file.name.rpartition("/")[2] for file in found.logs] == ["00000000000000000000.log"]
    assert found.captures
    assert not found.request_logs
    # A file that is given by its path is used whatever its name; its content determines its type.
    renamed = tmp_path / "broker-7"
    renamed.write_bytes(LINE)
    assert [log.source.name for log in input_sources([renamed]).request_logs] == [str(renamed)]
    with pytest.raises(CaptureError, match="would be counted twice"):
        input_sources([captures, renamed])
