"""Each line of a request log is read once, however the log is cut, renamed and compressed."""

from __future__ import annotations

import gzip
import random
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from flexwire.errors import CaptureError, FlexwireError
from flexwire.inputs import input_sources
from flexwire.logs.request_log import (
    BadLine,
    LoggedRequest,
    RefusedRequest,
    RequestLogReader,
    Zone,
    positions,
    read_lines,
)
from flexwire.logs.request_log.lines import pieces_of
from flexwire.logs.request_log.positions import ResumedLogs, number_in_order, resume_logs
from flexwire.spark.delta.ledger import fingerprint
from tests.capture.request_lines import PLACE, line, real_lines
from tests.capture.rotating import LoggingBroker, live
from tests.searching import times

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.logs.request_log.lines import RequestLogFile
    from flexwire.logs.request_log.positions import LogPosition

UTC = Zone()
FROM = b"[2026-11-22 20:00:01,000] ERROR Exception while processing request from %s (kafka.network)"
REFUSED = b"Caused by: Received request for api with key 1 (Fetch) and unsupported version 3"


def numbered(count: int, wide: int = 0, at: int = 0) -> list[bytes]:
    """Return lines with different times and correlation ids."""
    header = {"requestApiKey": 3, "requestApiVersion": 12, "clientId": "c" * wide}
    return [
        line(requestHeader=header | {"correlationId": number}).replace(
            b"20:00:00,123",
            b"20:%02d:%02d,%03d" % (number // 60000 % 60, number // 1000 % 60, number % 1000),
        )
        for number in range(at, at + count)
    ]


@dataclass
class Reader:
    """Reads the new lines in a directory again and again."""

    root: Path
    known: tuple[LogPosition, ...] = ()
    found: list[object] = field(default_factory=list)
    last: ResumedLogs = field(default_factory=lambda: ResumedLogs((), ()))

    def read(self, piece: int = 1 << 30) -> ResumedLogs:
        files = input_sources([self.root]).request_logs
        self.last = resume_logs(files, self.known, UTC, fingerprint)
        self.known = self.last.positions
        for file in self.last.files:
            self.found += self.items(file, piece)
        return self.last

    @staticmethod
    def items(file: RequestLogFile, size: int) -> list[object]:
        found: list[object] = []
        for piece in pieces_of([file], size):
            reader = RequestLogReader(UTC)
            if file.waits_at is not None and piece.start == file.start:
                reader.wait_after(next(read_lines(piece._replace(start=file.waits_at, stop=None))))
            for item in reader.read(read_lines(piece)):
                if isinstance(item, LoggedRequest):
                    found.append((item.header.correlation_id, item.error))
                elif isinstance(item, RefusedRequest):
                    found.append(item.reason)
                elif isinstance(item, BadLine):
                    found.append(item)
        return found


@pytest.mark.parametrize("seed", range(times(40)))
def test_each_line_is_read_once_after_any_cuts(seed: int, tmp_path: Path) -> None:
    source = random.Random(seed)
    brokers = [
        LoggingBroker(tmp_path / str(number), some_lines(source, number * 1000))
        for number in range(source.choice([1, 2]))
    ]
    reader = Reader(tmp_path)
    parts = sorted(source.random() for _ in range(source.randrange(6)))
    for part in [*parts, 1]:
        live(source, brokers, part)
        try:
            reader.read(source.choice([100, 1000, 1 << 30]))
        except CaptureError as error:
            # The log contains only whole lines of another kind so far.
            assert "does not begin with lines of such a log" in str(error)  # noqa: PT017 - reading may also succeed
    at_once = Reader(tmp_path)
    at_once.read(source.choice([100, 1000, 1 << 30]))
    assert sorted(map(repr, reader.found)) == sorted(map(repr, at_once.found))
    requests = [one for one in reader.found if isinstance(one, tuple)]
    written = [text for broker in brokers for text in broker.lines if b"Completed" in text]
    assert len(requests) == len(set(requests)) == len(written)
    assert [one.number for one in reader.known] == [*range(len(reader.known))]
    assert not reader.read().files


def some_lines(source: random.Random, first: int) -> list[bytes]:
    """Return lines of requests, and pairs of lines about refused requests."""
    lines = numbered(source.randrange(1, 40), source.choice([0, 100, 3000]), first)
    for at in range(source.randrange(3)):
        place = source.randrange(len(lines))
        between = numbered(source.choice([0, 0, 1]), at=500_000 + first + at)
        lines[place:place] = [FROM % b"10.0.0.1:1-10.0.0.2:2-0-3", *between, REFUSED, b"", b"x"]
    return lines


def log(place: Path, lines: list[bytes], rest: bytes = b"") -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"".join(one + b"\n" for one in lines) + rest)
    return place


WIDE = 5000
"""With a client id of this length, four lines have more bytes than identify a log."""


def test_a_line_without_its_end_is_left_for_the_next_time(tmp_path: Path) -> None:
    one, two, three = numbered(3)
    path = log(tmp_path / "kafka-request.log", [one], two[:100])
    reader = Reader(tmp_path)
    (note,) = reader.read().notes
    assert (
        note
        == f"The last line of {path} has no line ending yet, so the next analysis will read it."
    )
    log(path, [one, two], three)
    reader.read()
    log(path, [one, two, three])
    assert reader.read().notes == ()
    assert reader.found == [(0, None), (1, None), (2, None)]


def test_a_first_line_without_its_end_is_no_error(tmp_path: Path) -> None:
    (one,) = numbered(1)
    reader = Reader(tmp_path)
    path = log(tmp_path / "kafka-request.log", [], one[:20])
    assert not reader.read().files
    log(path, [one])
    reader.read()
    assert reader.found == [(0, None)]


@pytest.mark.parametrize("wide", [0, WIDE])
def test_a_file_that_is_renamed_moved_compressed_or_copied_is_known(
    wide: int, tmp_path: Path
) -> None:
    lines = numbered(9, wide)
    path = log(tmp_path / "a" / "kafka-request.log", lines[:5])
    reader = Reader(tmp_path)
    reader.read()
    path = path.rename(path.with_name("kafka-request.log.2026-11-22-10"))
    assert reader.read().known == (str(path),)
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert sorted(reader.read().known) == sorted(map(str, (path, packed)))
    path.unlink()
    (tmp_path / "b").mkdir()
    packed.rename(tmp_path / "b" / packed.name)
    assert reader.read().known == (str(tmp_path / "b" / packed.name),)
    # Any file of the log may have gained lines.
    log(tmp_path / "b" / "kafka-request.log.3", lines)
    (file,) = reader.read().files
    assert (file.number, file.source.name) == (0, str(tmp_path / "b" / "kafka-request.log.3"))
    assert reader.found == [(number, None) for number in range(9)]


@pytest.mark.parametrize("wide", [0, WIDE])
def test_copies_are_read_once_and_the_longest_is_read(wide: int, tmp_path: Path) -> None:
    lines = numbered(8, wide)
    log(tmp_path / "kafka-request.log", lines)
    log(tmp_path / "kafka-request.log.copy", lines[:6])
    (tmp_path / "kafka-request.log.gz").write_bytes(
        gzip.compress((tmp_path / "kafka-request.log").read_bytes())
    )
    reader = Reader(tmp_path)
    resumed = reader.read()
    assert [file.source.name for file in resumed.files] == [str(tmp_path / "kafka-request.log")]
    assert len(resumed.known) == 2
    assert reader.found == [(number, None) for number in range(8)]


def test_short_logs_of_two_brokers_may_be_equal(tmp_path: Path) -> None:
    lines = numbered(3)
    one, two = (log(tmp_path / name / "kafka-request.log", lines[:1]) for name in "ab")
    reader = Reader(tmp_path)
    assert len(reader.read().files) == 2
    log(two, lines[:2])
    assert [file.number for file in reader.read().files] == [1]
    log(one, [lines[0], lines[2]])
    assert [file.number for file in reader.read().files] == [0]
    assert reader.found == [(0, None), (0, None), (1, None), (2, None)]


@pytest.mark.parametrize("wide", [0, WIDE])
def test_a_log_that_shrank_or_changed_is_told(wide: int, tmp_path: Path) -> None:
    lines = numbered(9, wide)
    path = log(tmp_path / "kafka-request.log", lines[:8])
    reader = Reader(tmp_path)
    reader.read()
    for changed in (lines[:6], [*lines[:5], *numbered(4, wide, at=70)]):
        log(path, changed)
        resumed = reader.read()
        (note,) = resumed.notes
        assert note.startswith(f"{path} was left out: it begins like a log that an earlier")
        assert not resumed.files
    log(path, lines)
    assert not reader.read().notes
    assert reader.found == [(number, None) for number in range(9)]


def test_a_log_that_begins_anew_under_the_same_name_is_another_one(tmp_path: Path) -> None:
    path = log(tmp_path / "kafka-request.log", numbered(9))
    reader = Reader(tmp_path)
    reader.read()
    # logrotate's `copytruncate` keeps a copy and empties the log.
    shutil.copy(path, tmp_path / "kafka-request.log.1")
    log(path, [])
    assert not reader.read().files
    log(path, numbered(2, at=50))
    assert [file.number for file in reader.read().files] == [1]
    assert len(reader.found) == 11


def test_a_gzip_file_that_ends_early_is_told(tmp_path: Path) -> None:
    lines = [*real_lines("4.4.0")]
    packed = gzip.compress(b"".join(one + b"\n" for one in lines))
    path = tmp_path / "kafka-request.log.1.gz"
    path.write_bytes(packed[: len(packed) // 2])
    reader = Reader(tmp_path)
    told, left = reader.read().notes
    assert told == f"{path}: the gzip file ends early or is damaged."
    assert left.startswith(f"The last line of {path}")
    assert 0 < len(reader.found) < len(lines)
    path.write_bytes(packed)
    assert reader.read().notes == ()
    assert len(reader.found) == len(lines)


def test_a_server_log_goes_on_too(tmp_path: Path) -> None:
    data = (PLACE / "4.4.0-server.log").read_bytes()
    whole = Reader(tmp_path)
    log(tmp_path / "server.log", data.splitlines())
    whole.read()
    assert whole.found
    lines = data.splitlines()
    for cut in range(1, len(lines)):
        reader = Reader(tmp_path)
        log(tmp_path / "server.log", lines[:cut])
        try:
            reader.read()
        except CaptureError as error:
            assert "does not begin with lines of such a log" in str(error)  # noqa: PT017 - reading may also succeed
        log(tmp_path / "server.log", lines)
        reader.read()
        assert reader.found == whole.found, cut


def test_a_log_in_envelopes_is_refused(tmp_path: Path) -> None:
    log(tmp_path / "kafka-request.log", [b"2026-11-22T20:00:00.1Z stdout F " + line()])
    with pytest.raises(CaptureError, match="in the envelopes of a container"):
        Reader(tmp_path).read()


def test_there_are_not_too_many_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, one in enumerate(numbered(3)):
        log(tmp_path / f"kafka-request.log.{number}", [one])
    monkeypatch.setattr(positions, "MOST_FILES", 2)
    with pytest.raises(FlexwireError, match="more than the maximum of 2"):
        Reader(tmp_path).read()


def test_files_are_numbered_in_order_of_time(tmp_path: Path) -> None:
    for number, name in enumerate(("log.2", "log.1", "log")):
        text = line().replace(b"20:00:00", b"20:0%d:00" % number)
        log(tmp_path / f"kafka-request.{name}", [text])
    log(tmp_path / "kafka-request.log.0", [])
    files = number_in_order(input_sources([tmp_path]).request_logs, UTC)
    names = [file.source.name.rpartition(".")[2] for file in files]
    assert names == ["2", "1", "log", "0"]
    assert [file.number for file in files] == [0, 1, 2, 3]
