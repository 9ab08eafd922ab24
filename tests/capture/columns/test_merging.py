"""Segments are ordered by connection, latest time so far, file name, and position in the file.

Here all segments of a scan are in that order, so the segments of each connection are too.
"""

from __future__ import annotations

import gzip
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.reassembly import merging
from flexwire.capture.reassembly.assembly import connection_key
from flexwire.capture.reassembly.merging import (
    FileProgress,
    MergedReader,
    MergePosition,
    QueuedFile,
)
from flexwire.capture.reassembly.segments import FileNotes, SegmentColumns, SegmentReader
from flexwire.storage.file_search import list_captures
from flexwire.survey import request
from flexwire.survey.request import look_at_files
from tests.capture.interleaved import EVERYTHING, HOSTS, UNORDERED, write_capture
from tests.capture.opened_files import Opened
from tests.capture.traffic import enhanced, interface, packet, section
from tests.reference.frames import Note, in_order, read_file, values_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


Row = tuple[Any, ...]


def waiting_of(files: Sequence[Path]) -> list[QueuedFile]:
    found = look_at_files(list_captures(files))
    return sorted(QueuedFile(max(0, one.first_us), one.source.name) for one in found)


def segments_in_order(files: Sequence[Path]) -> list[Row]:
    """Return the segments of files, read with Python objects and sorted as in the reference."""
    found = in_order(one for file in files for one in read_file(file)[0])
    return [(connection_key(one.segment), one.file, *values_of(one.segment)) for one in found]


def notes_of(files: Sequence[Path]) -> set[Note]:
    """Return the notes that Python objects make about files."""
    return {note for file in files for note in read_file(file, show_credentials=True)[1]}


def told(notes: Sequence[FileNotes]) -> set[Note]:
    """Return the rows of notes for comparison."""
    found = {Note(one.file, None, one.packets) for one in notes}
    for one in notes:
        unused = one.unused()
        for reason, packets in unused.packets.items():
            found.add(Note(one.file, reason, packets, unused.samples.get(reason)))
    return found


def rows_of(chunk: SegmentColumns) -> list[Row]:
    origins = chunk.origins
    assert origins is not None
    found: list[Row] = []
    for row in range(len(chunk)):
        one = chunk.segment(row)
        assert 0 <= chunk.payload_at[row] <= len(chunk.data) - chunk.payload_size[row]
        file = origins.files[origins.of_row[row]]
        found.append((chunk.keys[chunk.key[row]], file, *values_of(one)))
    return found


def read(
    reader: MergedReader,
) -> tuple[list[Row], list[tuple[int, MergePosition]], list[FileNotes]]:
    """Return the rows, the positions at which reading can continue, and the notes."""
    rows: list[Row] = []
    places: list[tuple[int, MergePosition]] = []
    notes: list[FileNotes] = []
    for item in reader:
        if isinstance(item, FileNotes):
            notes.append(item)
            continue
        rows += rows_of(item)
        if reader.position is not None:
            places.append((len(rows), reader.position))
    return rows, places, notes


@pytest.mark.slow
@pytest.mark.parametrize(("chunk_bytes", "most_open"), [(60, 256), (3_000, 256), (3_000, 2)])
@pytest.mark.parametrize(
    "shape", [HOSTS, UNORDERED, replace(EVERYTHING, taps=3), replace(HOSTS, compressed=1.0)]
)
def test_segments_come_in_the_order_of_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: Any, chunk_bytes: int, most_open: int
) -> None:
    monkeypatch.setattr(merging, "MOST_OPEN", most_open)
    source = random.Random(chunk_bytes)
    files = write_capture(tmp_path, chunk_bytes, replace(shape, connections=5))
    expected, waiting = segments_in_order(files), waiting_of(files)
    reader = MergedReader(
        waiting, chunk_bytes=chunk_bytes, most_skipped=1 << 30, show_credentials=True
    )
    rows, places, notes = read(reader)
    assert rows == expected
    assert len(notes) == len(files)
    assert told(notes) == notes_of(files)
    assert len(places) > 1
    for count, front in source.sample(places, min(len(places), 6)):
        more = source.randrange(1, 200)
        begin = MergedReader(
            waiting[front.begun :],
            under_way=front.under_way,
            rows=more,
            chunk_bytes=source.choice([100, 2_000]),
            most_skipped=1 << 30,
        )
        found, further, _ = read(begin)
        assert found == expected[count : count + more]
        # Reading can also continue from a position that a continued reader returned.
        for passed, place in further[:1]:
            again = MergedReader(waiting[front.begun + place.begun :], under_way=place.under_way)
            assert read(again)[0] == expected[count + passed :]


def test_within_gzipped_files_one_can_go_on_as_long_as_little_is_read_again(
    tmp_path: Path,
) -> None:
    files = write_capture(tmp_path, 1, replace(HOSTS, compressed=1.0, files=1))
    waiting = waiting_of(files)
    found = {
        name: len(read(MergedReader(waiting, chunk_bytes=2_000, most_skipped=most))[1])
        for name, most in {"never": 0, "seldom": 9_000, "always": 1 << 30}.items()
    }
    assert found["never"] < found["seldom"] < found["always"]


def test_a_file_is_open_only_while_its_segments_are_due(tmp_path: Path) -> None:
    files = write_capture(tmp_path, 1, replace(HOSTS, files=12, skew=100, compressed=0.0))
    assert len(files) > 30
    reader = MergedReader(waiting_of(files), chunk_bytes=2_000)
    most = 0
    for item in reader:
        if isinstance(item, SegmentColumns):
            front = reader.position
            assert front is not None
            most = max(most, len(front.under_way))
    # There are three hosts. If times go back, two files of each host are open at the same time.
    assert 3 <= most <= 6


def test_a_file_without_segments_gives_its_notes(tmp_path: Path) -> None:
    files = write_capture(tmp_path, 1, replace(HOSTS, files=1, connections=2))
    empty, broken = tmp_path / "empty.pcap", tmp_path / "broken.pcap.gz"
    head = (next(one for one in files if one.suffix == ".pcap")).read_bytes()[:24]
    empty.write_bytes(head)
    largest = max(files, key=lambda one: one.stat().st_size)
    broken.write_bytes(gzip.compress(largest.read_bytes())[:-40])
    every = [*files, empty, broken]
    rows, _, notes = read(MergedReader(waiting_of(every)))
    assert rows == segments_in_order(every)
    packets = {one.file: one.packets for one in notes}
    assert packets[str(empty)] == 0
    assert packets[str(broken)] > 0
    assert set(packets) == {str(one) for one in every}


@pytest.mark.parametrize("look_bytes", [1 << 20, 200])
def test_a_file_is_begun_by_its_first_segment_whatever_packets_come_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look_bytes: int
) -> None:
    monkeypatch.setattr(request, "LOOK_BYTES", look_bytes)
    other = bytearray(packet())
    other[9] = 17  # UDP
    head = section() + interface()
    late = [enhanced(bytes(other), 900 + number) for number in range(9)]
    segments = [enhanced(packet(), 100 + 10 * number) for number in range(3)]
    one, two = tmp_path / "one.pcapng", tmp_path / "two.pcapng"
    one.write_bytes(head + b"".join([*late, *segments]))
    two.write_bytes(head + enhanced(packet(), 105) + enhanced(packet(), 2_000))
    rows, _, _ = read(MergedReader(waiting_of([one, two]), chunk_bytes=60))
    assert rows == segments_in_order([one, two])
    assert [row[1] for row in rows] == [str(one), str(two), str(one), str(one), str(two)]


@pytest.mark.long
@pytest.mark.slow
def test_no_more_than_256_files_are_open_however_many_are_due(tmp_path: Path) -> None:
    head, files = section() + interface(), []
    for number in range(300):
        files.append(tmp_path / f"{number:03}.pcapng")
        # Each file is open from its first to its last time, in chunks of two or three packets.
        times = [100 + number % 7 + 10 * step for step in range(4)]
        files[-1].write_bytes(head + b"".join(enhanced(packet(), one) for one in times))
    opened = Opened()
    rows, _, notes = read(MergedReader(waiting_of(files), chunk_bytes=200, opener=opened.opener))
    assert rows == segments_in_order(files)
    assert told(notes) == notes_of(files)
    assert opened.most == 256
    assert opened.open == 0
    # A file continues where its chunk ended, not at its start.
    again = {name: starts for name, starts in opened.starts.items() if len(starts) > 1}
    assert len(again) == 300 - 256
    for starts in again.values():
        assert starts == sorted(set(starts))


def test_files_that_can_go_on_are_closed_before_those_that_are_gzipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "MOST_OPEN", 3)
    head = section() + interface()
    files = [tmp_path / f"{number}.pcapng{'.gz' * (number < 2)}" for number in range(5)]
    for number, file in enumerate(files):
        data = head + b"".join(enhanced(packet(), 100 + number + 10 * step) for step in range(9))
        file.write_bytes(gzip.compress(data) if file.suffix == ".gz" else data)
    opened = Opened()
    reader = MergedReader(
        waiting_of(files), chunk_bytes=200, most_skipped=1 << 20, opener=opened.opener
    )
    assert read(reader)[0] == segments_in_order(files)
    assert opened.most == 3
    assert [len(opened.starts[str(one)]) for one in files[:2]] == [1, 1]
    assert min(len(opened.starts[str(one)]) for one in files[2:]) > 1


def test_the_chunks_of_very_many_files_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_capture(tmp_path, 1, replace(HOSTS, files=1, compressed=0.0))
    sizes: list[int] = []

    class Noting(SegmentReader):
        def __init__(self, *given: Any, chunk_bytes: int, **how: Any) -> None:
            sizes.append(chunk_bytes)
            super().__init__(*given, chunk_bytes=chunk_bytes, **how)

    monkeypatch.setattr(merging, "SegmentReader", Noting)
    monkeypatch.setattr(merging, "_CHUNKS_BYTES", 7_000)
    assert read(MergedReader(waiting_of(files), chunk_bytes=8_000))[0] == segments_in_order(files)
    # The first chunk is sized for a single file. Later chunks leave room for more files.
    assert max(sizes) == 2_000
    assert sizes[:3] == [2_000, 1_600, 1_333]


def test_a_place_is_the_first_segment_that_was_not_given(tmp_path: Path) -> None:
    files = write_capture(tmp_path, 1, replace(HOSTS, files=1, compressed=0.0))
    _, places, _ = read(MergedReader(waiting_of(files), chunk_bytes=2_000))
    skips = [one.skip for _, front in places for one in front.under_way]
    assert 0 in skips
    assert max(skips) > 0
    assert all(isinstance(one, FileProgress) for _, front in places for one in front.under_way)
