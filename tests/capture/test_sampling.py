"""Each file of a sampled capture states that it contains only some of the connections."""

from __future__ import annotations

import gzip
import io
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.capture.files.comments import CapturedPart, sampling_comment, share_in
from flexwire.capture.files.pcapng import PcapngWriter
from flexwire.capture.files.reading import DAMAGE, open_capture, packets_of, read_packets
from flexwire.errors import CaptureError
from flexwire.facts.captures import SampledCaptures, sampled_files
from flexwire.storage.file_search import list_captures
from flexwire.survey.request import NO_MARKS, AnalysisRequest, FileMarks, look_at_files, read_marks
from flexwire.survey.survey import Survey
from tests.capture.test_pcapng import CLIENT, SERVER
from tests.capture.traffic import request
from tests.tables.folding import surveyed_in_pieces
from tests.tables.test_inputs import surveyed

if TYPE_CHECKING:
    from pathlib import Path


def files(directory: Path, comment: bytes) -> list[Path]:
    with PcapngWriter(directory, comment=comment) as writer:
        connection = writer.open_connection(CLIENT, SERVER)
        for number in range(2):
            connection.send("request", request(number))
            writer.rotate()
        connection.send("request", request(2))
    return writer.paths


def share_of(data: bytes) -> float | None:
    return share_in(io.BufferedReader(io.BytesIO(data)))


def test_each_file_says_it_and_the_survey_has_it(tmp_path: Path) -> None:
    marked = files(tmp_path / "a", sampling_comment(0.25))
    packed = tmp_path / "a" / "packed.pcapng.gz"
    packed.write_bytes(gzip.compress(marked[0].read_bytes()))
    whole = files(tmp_path / "b", b"")
    sources = list_captures([tmp_path])
    told = FileMarks(CapturedPart(0.25))
    assert [one for _, one in read_marks(sources)] == [told] * 4
    assert {one.source.name: one.marks for one in look_at_files(sources)} == {
        **dict.fromkeys(map(str, [*marked, packed]), told),
        **dict.fromkeys(map(str, whole), NO_MARKS),
    }
    survey, _ = surveyed(AnalysisRequest(tuple(list_captures(marked))))
    assert survey.marks == [(str(one), told) for one in marked]
    _, folded, _ = surveyed_in_pieces(marked, 200)
    assert folded.marks == [(str(one), told) for one in marked]
    survey, _ = surveyed(AnalysisRequest(tuple(list_captures(whole))))
    assert survey.marks == []
    assert Survey().marks == []


def test_a_file_with_the_comment_reads_as_without(tmp_path: Path) -> None:
    one = [list(read_packets(path)) for path in files(tmp_path / "a", sampling_comment(0.5))]
    two = [list(read_packets(path)) for path in files(tmp_path / "b", b"")]
    assert [len(packets) for packets in one] == [len(packets) for packets in two]
    for path in (tmp_path / "a").iterdir():
        with open_capture(str(path)) as (file, _):
            assert share_in(file) == 0.5
            # Sampling removed nothing from this file.
            assert len(list(packets_of(str(path), file))) > 0


def section(order: str, *options: tuple[int, bytes]) -> bytes:
    said = b"".join(
        struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)
        for code, value in options
    )
    head = struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)
    length = struct.pack(f"{order}I", 12 + len(head) + len(said))
    return b"\x0a\x0d\x0d\x0a" + length + head + said + length


@pytest.mark.parametrize("order", "<>")
def test_comments_of_others_before_ours_are_passed_over(order: str) -> None:
    ours = (1, sampling_comment(0.01))
    assert share_of(section(order, (1, b"of an editor"), (4, b"odd"), ours)) == 0.01
    assert share_of(section(order, (1, b"of an editor"))) is None
    assert share_of(section(order, (4, ours[1]))) is None


@pytest.mark.parametrize(
    "share", ["0", "1", "-1", "2", "true", '"a"', "null", "NaN", "1e999", "[]"]
)
def test_what_is_not_a_share_is_not_taken_for_one(share: str) -> None:
    said = sampling_comment(0.5).replace(b"0.5", share.encode())
    assert share_of(section("<", (1, said))) is None


@given(st.binary(max_size=80), st.integers(0, 200), st.binary(max_size=6))
def test_damage_gives_a_share_or_nothing(data: bytes, at: int, other: bytes) -> None:
    whole = section("<", (1, sampling_comment(0.5)))
    for one in (data, b"\x0a\x0d\x0d\x0a" + data, whole[:at], whole[:at] + other + whole[at:]):
        share = share_of(one)
        assert share is None or 0 < share < 1


def test_a_file_that_is_not_a_capture_has_no_share(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    path.write_bytes(b"nothing")
    (source,) = list_captures([path])
    assert read_marks([source]) == []
    (look,) = look_at_files([source])
    assert isinstance(look.error, CaptureError)


def test_the_files_of_each_share_are_counted() -> None:
    assert sampled_files([(0.5, ""), (0.1, ""), (0.5, "")]) == (
        SampledCaptures(0.1, 1),
        SampledCaptures(0.5, 2),
    )
    assert len(sampled_files((one / 1000, "") for one in range(1, 999))) == 20


def test_what_is_damaged_says_none_and_is_found_damaged_after_that(tmp_path: Path) -> None:
    whole = gzip.compress(b"\n\r\r\n" + bytes(range(256)) * 40)
    path = tmp_path / "damaged.pcapng.gz"
    path.write_bytes(whole[:14] + b"\xff" * 20 + whole[34:])
    found = []
    with open_capture(str(path)) as (file, _):
        assert share_in(file) is None
        for _ in range(3):
            with pytest.raises(DAMAGE) as damage:
                file.read()
            found.append(repr(damage.value))
    assert len(set(found)) == 1
