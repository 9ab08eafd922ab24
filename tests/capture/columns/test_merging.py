"""Files that overlap in time give their segments in the order that the reference sorts them into.

That is by connection, by the latest time in the file until then, by the file's name, and by the
place in it. Here all are in that order, so those of each connection are.
"""

from __future__ import annotations

import gzip
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.reassembly import merging
from flexwire.capture.reassembly.merging import CrowdedError, Front, MergedReader, UnderWay, Waiting
from flexwire.capture.reassembly.segments import FileNotes, SegmentColumns
from flexwire.spark.by_objects.segments import SEGMENTS, _file_rows
from flexwire.storage.listing import list_sources
from flexwire.survey import request
from flexwire.survey.request import looks
from tests.capture.interleaved import EVERYTHING, HOSTS, UNORDERED, write_capture
from tests.capture.traffic import enhanced, interface, packet, section

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Row = tuple[Any, ...]

_KEPT = [*SEGMENTS.names[:2], *SEGMENTS.names[3:12]]


def waiting_of(files: Sequence[Path]) -> list[Waiting]:
    found = looks(list_sources(files))
    return sorted(Waiting(max(0, one.first_us), one.source.name) for one in found)


def segments_in_order(files: Sequence[Path]) -> list[Row]:
    """The segments of files by objects, sorted as the reference sorts them."""
    rows = [
        dict(zip(SEGMENTS.names, row, strict=True))
        for file in files
        for row, _ in _file_rows(str(file), show_credentials=True)
        if row[0] is not None
    ]
    rows.sort(key=lambda one: (one["clock_us"], one["file"], one["ordinal"]))
    return [tuple(one[name] for name in _KEPT) for one in rows]


def rows_of(chunk: SegmentColumns) -> list[Row]:
    origins = chunk.origins
    assert origins is not None
    found: list[Row] = []
    for row in range(len(chunk)):
        one = chunk.segment(row)
        assert 0 <= chunk.payload_at[row] <= len(chunk.data) - chunk.payload_size[row]
        file = origins.files[origins.of_row[row]]
        fields = (getattr(one, name) for name in one.__struct_fields__)
        found.append((chunk.keys[chunk.key[row]], file, *fields))
    return found


def read(reader: MergedReader) -> tuple[list[Row], list[tuple[int, Front]], list[FileNotes]]:
    """The rows, after how many of them one can go on and where, and the notes."""
    rows: list[Row] = []
    places: list[tuple[int, Front]] = []
    notes: list[FileNotes] = []
    for item in reader:
        if isinstance(item, FileNotes):
            notes.append(item)
            continue
        rows += rows_of(item)
        if reader.position is not None:
            places.append((len(rows), reader.position))
    return rows, places, notes


@pytest.mark.parametrize("chunk_bytes", [60, 3_000])
@pytest.mark.parametrize(
    "shape", [HOSTS, UNORDERED, replace(EVERYTHING, taps=3), replace(HOSTS, compressed=1.0)]
)
def test_segments_come_in_the_order_of_the_reference(
    tmp_path: Path, shape: Any, chunk_bytes: int
) -> None:
    source = random.Random(chunk_bytes)
    files = write_capture(tmp_path, chunk_bytes, replace(shape, connections=5))
    expected, waiting = segments_in_order(files), waiting_of(files)
    rows, places, notes = read(MergedReader(waiting, chunk_bytes=chunk_bytes, most_skipped=1 << 30))
    assert rows == expected
    assert sorted(one.file for one in notes) == sorted(map(str, files))
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
        # From a place that was come to from another place.
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
    # Of three hosts; where times go back, of one host two.
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


def test_too_many_files_at_once_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_capture(tmp_path, 1, replace(HOSTS, files=1))
    monkeypatch.setattr(merging, "MOST_OPEN", 2)
    with pytest.raises(CrowdedError):
        read(MergedReader(waiting_of(files)))
    monkeypatch.setattr(merging, "MOST_OPEN", 3)
    assert read(MergedReader(waiting_of(files)))[0]


def test_a_place_is_the_first_segment_that_was_not_given(tmp_path: Path) -> None:
    files = write_capture(tmp_path, 1, replace(HOSTS, files=1, compressed=0.0))
    _, places, _ = read(MergedReader(waiting_of(files), chunk_bytes=2_000))
    skips = [one.skip for _, front in places for one in front.under_way]
    assert 0 in skips
    assert max(skips) > 0
    assert all(isinstance(one, UnderWay) for _, front in places for one in front.under_way)
