"""A survey in pieces produces the same result as the survey in order: the same rows and facts.

Every piece begins with guesses, so the tests mainly look for wrong guesses.
"""

from __future__ import annotations

import pickle
import random
import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import pytest

from flexwire.capture.files.packets import CapturedPacket
from flexwire.capture.files.pcapng import SEGMENT_BYTES, PcapngWriter
from flexwire.capture.files.reading import read_packets
from flexwire.storage.file_search import list_captures
from flexwire.storage.input_file import InputFile
from flexwire.survey.fold import Fold
from flexwire.survey.piece_merger import OverlapError
from flexwire.survey.piece_survey import survey_piece
from flexwire.survey.pieces import Piece, cut_into_pieces
from flexwire.survey.state import SegmentOrder, SurveyState, UnprovenError
from flexwire.survey.survey import AnalysisRequest, Survey, list_readable_files
from tests.capture.exchanges import Talk, conversation
from tests.capture.interleaved import (
    EVERYTHING,
    LOSSY,
    MID_STREAM,
    ONE_CONNECTION,
    OVERLAPPING,
    SHAPES,
    START_US,
    TLS,
    UNORDERED,
    Shape,
    write_capture,
)
from tests.capture.traffic import enhanced, interface, option, packet, response, section
from tests.searching import in_make_long
from tests.tables.folding import planted, produced, surveyed_in_pieces, write_steps
from tests.tables.test_ranges import rows_of, surveyed

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.capture.pairing.pairing import HeaderColumns
    from flexwire.capture.reassembly.frames import FrameColumns


TIME_IN_BLOCK = 12  # the two halves of a packet's time, after its head and interface
_SECONDS_LATER = 14  # an interface option: this number is added to the interface's times
ORDERED = sorted(set(SHAPES) - {*OVERLAPPING})
# Shapes that other tests of captures do not use.
MORE = {
    "classic": replace(MID_STREAM, formats=("pcap", "nanoseconds"), loss=0.0, acks=1.0),
    "gzip": replace(EVERYTHING, compressed=1.0, loss=0.0),
    "sections": replace(EVERYTHING, blocks=0.05, formats=("pcapng",), compressed=0.0),
    "large": replace(ONE_CONNECTION, talk=Talk(exchanges=60, depth=6, large=0.7), files=1),
    "sasl": Shape(talk=Talk(exchanges=60, sasl=1.0, any_api=0.2), files=2),
    "alone": replace(ONE_CONNECTION, talk=Talk(exchanges=400, depth=10, large=0.02), files=1),
    "tls": TLS,
    "hidden": replace(TLS, loss=0.0, reorder=0.0, begun=0.0, files=1, acks=1.0),
    "repeated": replace(TLS, talk=Talk(exchanges=40, large=0.2), repeats=0.1, loss=0.0, files=1),
    "long": Shape(connections=12, talk=Talk(exchanges=80, depth=8), acks=1.0),
}


def same(files: list[Path], size: int, chunk_bytes: int) -> Survey:
    """Survey in pieces, and check that result and state equal those of the survey in order."""
    whole = surveyed(files)
    parts = surveyed_in_pieces(files, size, chunk_bytes=chunk_bytes, range_bytes=size)
    assert replace(parts[1], ranges=1) == whole[1]
    expected, got = rows_of(*whole), rows_of(*parts)
    assert got.keys() == expected.keys()
    for table, rows in expected.items():
        assert got[table] == rows, table
    return parts[1]


def size_of(files: list[Path]) -> int:
    return sum(one.stat().st_size for one in files)


# "gzip", "sections" and "tls" contain all that these shapes contain, and more.
ALIKE = ("CLEAN", "LOSSY", "MID_STREAM", "ONE_CONNECTION", "alone", "large", "repeated", "sasl")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*(one for one in (*ORDERED, *MORE) if one not in ALIKE), *in_make_long(*ALIKE)]
)
def test_pieces_give_what_the_whole_gives(name: str, tmp_path: Path) -> None:
    source = random.Random(name)
    shape = (SHAPES | MORE)[name]
    files = write_capture(tmp_path, 1, replace(shape, connections=min(shape.connections, 6)))
    size = size_of(files) // source.choice([3, 6])
    found = same(files, size, source.choice([2_000, 10_000, 1 << 20]))
    assert found.ranges > 1


@pytest.mark.parametrize("form", ["pcapng", *in_make_long("pcap")])
def test_pieces_that_end_within_the_head_of_a_file_have_all_of_it(
    form: str, tmp_path: Path
) -> None:
    shape = Shape(connections=1, talk=Talk(exchanges=1), formats=(form,), links=(1,))
    files = write_capture(tmp_path, 3, shape)
    for size in (4, 5, 29):
        found = surveyed_in_pieces(files, size)[1]
        assert replace(found, ranges=1) == surveyed(files)[1], size


@pytest.mark.parametrize("name", ["long", "alone", "hidden"])
def test_of_an_ordinary_capture_nothing_is_read_again(name: str, tmp_path: Path) -> None:
    files = write_capture(tmp_path, 1, MORE[name])
    found = surveyed_in_pieces(files, size_of(files) // 4)[1]
    assert found.redone == 0
    assert sum(one.packets for one in found.notes) > 400


@pytest.mark.long
@pytest.mark.slow
def test_captures_within_a_capture_are_no_place_to_begin(tmp_path: Path) -> None:
    inner = b"".join(enhanced(packet(), START_US + one, 0, "<") for one in range(2000))
    files = write_steps(tmp_path, [planted(inner, 8)] * 2)
    assert same(files, size_of(files) // 30, 1 << 20).redone > 0


@pytest.mark.slow
def test_frames_within_frames_are_no_place_to_begin(tmp_path: Path) -> None:
    said = conversation(random.Random(1), Talk(exchanges=1000), 1)
    inner = b"".join(data for way, data in said if way == "request")
    # Segments that begin with bytes from within a frame.
    assert len(inner) > SEGMENT_BYTES
    files = write_steps(tmp_path, [planted(inner, 15)] * 2)
    assert same(files, size_of(files) // 9, 1 << 20).redone > 0


def test_files_that_overlap_are_not_surveyed_in_pieces(tmp_path: Path) -> None:
    files = write_capture(tmp_path, 1, UNORDERED)
    assert surveyed(files)[1].is_merged
    with pytest.raises(OverlapError):
        surveyed_in_pieces(files, 20_000)


@pytest.mark.slow
def test_what_is_kept_is_the_same_each_time(tmp_path: Path) -> None:
    files = write_capture(tmp_path, 2, replace(LOSSY, connections=4))
    first = surveyed_in_pieces(files, 20_000, range_bytes=20_000)
    second = surveyed_in_pieces(files, 20_000, range_bytes=20_000)
    assert first[1] == second[1]
    assert rows_of(*first) == rows_of(*second)
    assert first[2].keys() == second[2].keys()


def test_without_kernels_a_capture_is_surveyed_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_capture(tmp_path, 1, ONE_CONNECTION)
    monkeypatch.setattr("flexwire.survey.fold.has_kernels", lambda: False)
    with pytest.raises(UnprovenError):
        surveyed_in_pieces(files, 20_000)


@pytest.mark.long
@pytest.mark.slow
def test_requests_without_a_response_are_known_by_their_places(tmp_path: Path) -> None:
    talk = list(conversation(random.Random(1), Talk(exchanges=2), 0))
    for number in range(1000, 1400):
        talk.append(("request", produced(number, bytes(number % 90))))
        if number % 7:
            talk.append(("response", response(number, 20)))
    files = write_steps(tmp_path, [talk] * 3)
    assert same(files, size_of(files) // 5, 1 << 20).redone == 0


@pytest.mark.long
@pytest.mark.slow
def test_a_section_in_the_middle_of_a_file_changes_what_follows(tmp_path: Path) -> None:
    talks = [conversation(random.Random(one), Talk(exchanges=150), one) for one in range(2)]
    (path,) = write_steps(tmp_path, talks)
    data = path.read_bytes()
    begins = [one.offset for one in read_packets(path) if isinstance(one, CapturedPacket)]
    middle = begins[len(begins) // 3]
    later = interface(options=option(_SECONDS_LATER, struct.pack("<q", 100)))
    path.write_bytes(data[:middle] + section() + later + data[middle:])
    found = same([path], size_of([path]) // 5, 1 << 20)
    assert found.redone > 0
    assert found.span_us > 100_000_000


def test_a_clock_that_goes_back_at_a_cut_changes_no_span(tmp_path: Path) -> None:
    (path,) = write_capture(tmp_path, 1, replace(MORE["large"], loss=0.0))
    data = bytearray(path.read_bytes())
    cut = len(data) // 2
    for one in read_packets(path):
        if isinstance(one, CapturedPacket) and one.offset < cut:
            at = one.offset + TIME_IN_BLOCK
            high, low = struct.unpack_from("<II", data, at)
            struct.pack_into("<II", data, at, high + 1, low)
    path.write_bytes(data)
    found = same([path], cut, 1 << 20)
    # The frame across the cut was captured last, by the times of its first bytes.
    assert (found.ranges, found.redone) == (2, 0)


def test_ports_that_are_used_twice_within_a_piece_are_two_connections(tmp_path: Path) -> None:
    talk, more = (
        conversation(random.Random(one), Talk(exchanges=exchanges), 0)
        for one, exchanges in ((1, 200), (2, 3))
    )
    now = START_US
    with PcapngWriter(tmp_path, max_bytes=1 << 30) as writer:
        first = writer.open_connection(("10.0.0.9", 40000), ("10.0.0.1", 9092), timestamp_us=now)
        for number, (way, data) in enumerate(talk):
            first.send(way, data, timestamp_us=(now := now + 100))
            if number == len(talk) // 2:
                for again in range(3):
                    # The sequence number is from the previous connection, which has ended.
                    other = writer.open_connection(
                        ("10.0.0.9", 40001),
                        ("10.0.0.1", 9092),
                        timestamp_us=now,
                        initial_sequences=(1000 + again, 9000 + again),
                    )
                    for one, some in more:
                        other.send(one, some, timestamp_us=(now := now + 100))
        files = writer.paths
    found = same(files, size_of(files) // 3, 1 << 20)
    assert len(found.connections) == 4
    assert found.redone == 0


@dataclass(frozen=True, slots=True)
class Counted(InputFile):
    """A source that counts how often its name is read."""

    asked: ClassVar[list[int]] = [0]

    @property
    def name(self) -> str:
        """Return the name."""
        self.asked[0] += 1
        return self.url


def names_asked(directory: Path, files: int, *, is_known: bool) -> int:
    """Return how often names are read to fold this many files if all or most are read again."""
    paths = write_capture(directory, 1, replace(MORE["long"], files=files, connections=2))
    asked = AnalysisRequest(
        tuple(Counted(one.url, one.size, one.version) for one in list_captures(paths))
    )
    survey = Survey()
    ordered = list_readable_files(asked, survey) or []
    pieces = [Piece((one,)) for one in ordered]
    assert len(pieces) == files
    summaries = [survey_piece(asked, one, is_first=not at) for at, one in enumerate(pieces)]
    for one in summaries:
        assert one is not None
        for log in one.logs.values():
            log.steps, log.is_whole = [], False
    Counted.asked[0] = 0
    given = summaries if is_known else [None] * files
    kept: dict[str, bytes] = {}
    assert Fold(asked, kept.__setitem__, ordered, survey).run(pieces, given).redone > files
    return Counted.asked[0]


@pytest.mark.slow
@pytest.mark.parametrize("is_known", [True, False])
def test_what_is_read_again_takes_no_look_at_all_names(tmp_path: Path, *, is_known: bool) -> None:
    few, many = (names_asked(tmp_path / str(files), files, is_known=is_known) for files in (10, 40))
    assert many < 5 * few


@pytest.mark.long
@pytest.mark.slow
def test_a_range_that_shows_more_than_its_pieces_said_has_all_connections(tmp_path: Path) -> None:
    shape = replace(MORE["long"], connections=40, talk=Talk(exchanges=8))
    files = write_capture(tmp_path, 1, shape)
    size = size_of(files) // 40
    asked = AnalysisRequest(tuple(list_captures(files)), record_bytes=True, range_bytes=3 * size)
    survey = Survey()
    ordered = list_readable_files(asked, survey) or []
    pieces = cut_into_pieces(ordered, size)
    summaries = [survey_piece(asked, one, is_first=not at) for at, one in enumerate(pieces)]
    for one in summaries[1::3]:
        assert one is not None
        # The fold acts as if the guess had been wrong.
        one.start, one.keys = one.start._replace(offset=one.start.offset + 4), []
    kept: dict[str, bytes] = {}
    found = Fold(asked, kept.__setitem__, ordered, survey).run(pieces, summaries)
    assert 10 < found.ranges < len(pieces)
    assert found.redone > 0
    expected = rows_of(*surveyed(files))
    assert rows_of(asked, found, kept) == expected


def test_frames_of_all_steps_are_taken_in_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_capture(tmp_path, 1, replace(MORE["long"], reorder=0.03))
    last: dict[tuple[str, bool], int] = {}
    see = SurveyState.see

    def seen(
        self: SurveyState, frames: FrameColumns, given: HeaderColumns | None = None
    ) -> HeaderColumns:
        columns = (frames.connection, frames.is_response, frames.index)
        for number, is_response, index in zip(*(one.tolist() for one in columns), strict=True):
            key = frames.connections[number], is_response
            assert index > last.get(key, -1)
            last[key] = index
        return see(self, frames, given)

    monkeypatch.setattr(SurveyState, "see", seen)
    surveyed_in_pieces(files, size_of(files) // 3)
    assert len(last) == 2 * MORE["long"].connections


@pytest.mark.long
@pytest.mark.slow
def test_ports_that_are_used_again_and_again_are_read_once(tmp_path: Path) -> None:
    now = START_US
    with PcapngWriter(tmp_path, max_bytes=1 << 30) as writer:
        for again in range(6):
            opened, talks = [], []
            for number in range(4):
                # Later connections have higher sequence numbers (RFC 6528).
                first = 1000 + again * 50_000_000 + number
                opened.append(
                    writer.open_connection(
                        ("10.0.0.9", 40000 + number),
                        ("10.0.0.1", 9092),
                        timestamp_us=(now := now + 100),
                        initial_sequences=(first, first + 7),
                    )
                )
                source = random.Random(f"{again} {number}")
                talks.append(list(conversation(source, Talk(exchanges=25), number)))
            for steps in zip(*talks, strict=False):
                for one, (way, data) in zip(opened, steps, strict=True):
                    one.send(way, data, timestamp_us=(now := now + 100))
            for one in opened:
                one.close(timestamp_us=(now := now + 100))
        files = writer.paths
    found = same(files, size_of(files) // 5, 1 << 20)
    assert len(found.connections) == 24
    assert found.redone < 0.1 * sum(one.packets for one in found.notes)


def test_what_is_held_of_a_long_frame_is_not_handed_over_for_each_chunk(tmp_path: Path) -> None:
    talk = list(conversation(random.Random(1), Talk(exchanges=2), 0))
    talk += [("request", produced(1000, bytes(800_000))), ("response", response(1000, 20))]
    (path,) = write_steps(tmp_path, [talk])
    asked = AnalysisRequest(tuple(list_captures([path])), chunk_bytes=5000)
    piece = Piece(asked.files, path.stat().st_size // 4)
    found = survey_piece(asked, piece, is_first=False)
    assert found is not None
    assert len(found.chunks) > 8
    # There are two runs, because responses are found first: after one file, and then around the
    # other.
    assert len(pickle.dumps(found)) < 3 * path.stat().st_size


def test_the_clock_of_a_file_goes_on_from_part_to_part() -> None:
    order = SegmentOrder()
    assert order.goes_on("a", [("one", 5, 10)], 10)
    assert order.goes_on("a", [("one", 3, 4)], 4)
    assert order.goes_on("b", [("other", 20, 20)], 20)
    # These packets come after the other file's packets, although their time is earlier.
    assert order.goes_on("b", [("one", 7, 8)], 8)
    assert not order.goes_on("c", [("one", 19, 30)], 30)
