"""Captures by path or URL are read or reported, and their output has the right names."""

from __future__ import annotations

import gzip
import os
import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.files.links import read_segments
from flexwire.errors import CaptureError, StorageError
from flexwire.storage.file_search import list_captures
from flexwire.storage.filesystems import open_store
from flexwire.storage.input_file import PIECE_BYTES, InputFile
from flexwire.storage.output_directory import OutputDirectory
from flexwire.survey import request
from flexwire.survey.ranges import decode_range
from flexwire.survey.request import LOOK_BYTES, look_at_files
from flexwire.survey.survey import (
    AnalysisRequest,
    RangeContext,
    Survey,
    Surveyor,
    range_context_name,
)
from tests.capture.interleaved import CLEAN, HOSTS, write_capture
from tests.storage.servers import BUCKET, s3

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Row = dict[str, Any]

WRONG = b"not a capture, whatever the name"
SMALL: dict[str, Any] = {"chunk_bytes": 4096, "range_bytes": 6_000}


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Write three files of the same connections, the last one gzip-compressed."""
    folder = tmp_path_factory.mktemp("captures")
    first, second, third = write_capture(folder, 5, replace(CLEAN, files=3))
    packed = third.with_name(f"{third.name}.gz")
    packed.write_bytes(gzip.compress(third.read_bytes()))
    third.unlink()
    return [first, second, packed]


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with s3() as url:
        yield url


def surveyed(asked: AnalysisRequest) -> tuple[Survey, dict[str, bytes]]:
    kept: dict[str, bytes] = {}
    return Surveyor(asked, kept.__setitem__).run(), kept


def rows_of(asked: AnalysisRequest) -> list[tuple[str, Row]]:
    """Return all rows of all ranges, without the columns that name their file."""
    survey, kept = surveyed(asked)
    assert survey.ranges > 2
    rows = []
    for number in range(survey.ranges):
        # A task gets only the files of its range.
        for table, batch in decode_range(replace(asked, files=()), number, kept.__getitem__):
            rows += [(table, one) for one in batch.to_pylist()]
    for _, row in rows:
        row.pop("source", None)
    return rows


def put(url: str, *files: Path) -> None:
    place = OutputDirectory(url)
    for file in files:
        place.write(file.name, file.read_bytes())


@pytest.mark.long
@pytest.mark.slow
def test_captures_in_a_bucket_have_the_rows_of_the_same_files_here(
    captures: list[Path], bucket: str
) -> None:
    put(f"{bucket}/same", *captures)
    here, there = list_captures(captures), list_captures([f"{bucket}/same/"])
    assert [one.name for one in there] == [f"{bucket}/same/{file.name}" for file in captures]
    expected = rows_of(AnalysisRequest(tuple(here), **SMALL))
    assert len(expected) > 100
    assert rows_of(AnalysisRequest(tuple(there), **SMALL)) == expected


@pytest.mark.long
@pytest.mark.slow
def test_captures_of_several_hosts_in_a_bucket_are_merged(tmp_path: Path, bucket: str) -> None:
    files = write_capture(tmp_path, 1, replace(HOSTS, connections=4))
    put(f"{bucket}/hosts", *files)
    here, there = (
        AnalysisRequest(tuple(list_captures(one)), **SMALL) for one in (files, [f"{bucket}/hosts/"])
    )
    assert surveyed(here)[0].is_merged
    assert sorted(map(repr, rows_of(there))) == sorted(map(repr, rows_of(here)))


def test_a_range_is_told_of_its_own_files_only(captures: list[Path]) -> None:
    sources = tuple(list_captures(captures))
    survey, kept = surveyed(AnalysisRequest(sources, **SMALL))
    known: list[RangeContext] = [
        pickle.loads(kept[range_context_name(number)])  # noqa: S301 - the survey's own
        for number in range(survey.ranges)
    ]
    assert known[0].files == sources[:1]
    assert sources[0] not in known[-1].files
    assert known[-1].files[-1] == sources[2]
    assert {one for each in known for one in each.files} == set(sources)


@pytest.mark.slow
def test_an_object_that_is_replaced_after_the_survey_fails(
    captures: list[Path], bucket: str
) -> None:
    put(f"{bucket}/replaced", *captures)
    asked = AnalysisRequest(tuple(list_captures([f"{bucket}/replaced"])), **SMALL)
    survey, kept = surveyed(asked)
    last = captures[0]
    OutputDirectory(f"{bucket}/replaced").write(last.name, last.read_bytes() + b"\0" * 8)
    with pytest.raises(StorageError, match=rf"s3://.*/{last.name}: cannot read: the file changed"):
        list(decode_range(asked, 0, kept.__getitem__))
    with pytest.raises(StorageError, match="the file changed after"):
        surveyed(asked)
    open_store(bucket).files.rm_file(f"{BUCKET}/replaced/{last.name}")
    with pytest.raises(StorageError, match="the file was removed after it was listed"):
        surveyed(replace(asked, skip_unreadable=True))
    assert survey.ranges


def test_a_file_here_that_is_gone_or_cut_off_fails(captures: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "a.pcapng"
    file.write_bytes(captures[0].read_bytes())
    asked = AnalysisRequest(tuple(list_captures([file])), skip_unreadable=True)
    os.truncate(file, 1000)
    with pytest.raises(StorageError, match=r"a\.pcapng: cannot read: the file changed after"):
        surveyed(asked)
    file.unlink()
    with pytest.raises(StorageError, match="the file was removed after it was listed"):
        surveyed(asked)


@pytest.mark.slow
def test_a_file_that_grows_is_read_as_it_was_listed(captures: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "a.pcapng"
    whole = captures[0].read_bytes()
    file.write_bytes(whole)
    asked = AnalysisRequest(tuple(list_captures([file])), **SMALL)
    expected = rows_of(asked)
    with file.open("ab") as grown:
        grown.write(whole)
    assert rows_of(asked) == expected


def test_what_cannot_be_read_ends_the_survey_before_it_reads(
    captures: list[Path], tmp_path: Path
) -> None:
    wrong = [tmp_path / "a.pcap", tmp_path / "b.pcap"]
    for one in wrong:
        one.write_bytes(WRONG)
    sources = tuple(list_captures([*captures, *wrong]))
    survey, kept = surveyed(AnalysisRequest(sources))
    assert (survey.ranges, survey.notes, kept) == (0, [], {})
    assert [one.source for one in survey.unreadable] == [str(one) for one in wrong]
    assert "neither pcap nor pcapng" in survey.unreadable[0].reason


@pytest.mark.long
@pytest.mark.slow
def test_what_cannot_be_read_is_skipped_where_asked_for(
    captures: list[Path], tmp_path: Path
) -> None:
    wrong = tmp_path / "0.pcap"
    wrong.write_bytes(WRONG)
    (tmp_path / "empty.pcap").touch()
    asked = AnalysisRequest(tuple(list_captures(captures)), **SMALL)
    skipping = AnalysisRequest(
        tuple(list_captures([wrong, tmp_path, *captures])), skip_unreadable=True, **SMALL
    )
    assert rows_of(skipping) == rows_of(asked)
    survey, _ = surveyed(skipping)
    reasons = {one.file: list(one.unused().packets) for one in survey.notes if not one.packets}
    assert reasons == {one.source: [one.reason] for one in survey.unreadable}
    assert list(reasons) == [str(wrong), str(tmp_path / "empty.pcap")]


def test_a_file_that_breaks_off_in_the_middle_is_read_until_there(
    captures: list[Path], tmp_path: Path
) -> None:
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(captures[0].read_bytes()[:-10])
    survey, _ = surveyed(AnalysisRequest(tuple(list_captures([cut]))))
    (notes,) = survey.notes
    assert survey.unreadable == []
    assert notes.packets
    assert sum(notes.unreadable.packets.values()) == 1


def test_a_file_that_cannot_be_opened_is_unreadable_and_one_that_changed_is_not(
    captures: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,) = list_captures(captures[:1])

    def refuse(tried: str) -> None:
        def opened(self: InputFile, *_: Any, **_how: Any) -> Any:
            raise StorageError("Permission denied", url=self.url, tried=tried)

        monkeypatch.setattr(InputFile, "open", opened)

    refuse("open")
    (look,) = look_at_files([source])
    assert look.error is not None
    assert str(look.error) == f"{captures[0]}: cannot open: Permission denied"
    assert isinstance(look.error, CaptureError)
    refuse("read")
    with pytest.raises(StorageError):
        look_at_files([source])


def test_a_file_begins_when_its_first_segment_was_captured(captures: list[Path]) -> None:
    for look, file in zip(look_at_files(list_captures(captures)), captures, strict=True):
        first = next(iter(read_segments(file)))
        assert look.first_us == first.timestamp_us


@pytest.mark.slow
def test_of_a_large_file_a_little_is_read_to_order_it(
    captures: list[Path], bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = captures[0].read_bytes()
    long += b"\0" * (2 * PIECE_BYTES)
    OutputDirectory(f"{bucket}/long").write("a.pcapng", long)
    (source,) = list_captures([f"{bucket}/long/a.pcapng"])
    asked: list[tuple[int, int | None]] = []
    opened = InputFile.open

    def noted(self: InputFile, start: int = 0, stop: int | None = None, **_: Any) -> Any:
        asked.append((start, stop))
        return opened(self, start, stop)

    monkeypatch.setattr(InputFile, "open", noted)
    (look,) = look_at_files([source])
    assert look.first_us
    assert asked == [(0, LOOK_BYTES)]
    # Only the bytes before the first segment are read, however many there are.
    monkeypatch.setattr(request, "LOOK_BYTES", 30)
    assert look_at_files([source]) == [look]
    assert asked[1:] == [(0, 30), (0, None)]


def test_the_name_of_the_input_is_of_its_files_and_their_versions() -> None:
    one = InputFile("s3://bucket/a", 5, "x")
    digest = AnalysisRequest((one,)).digest
    assert (
        AnalysisRequest((InputFile("s3://bucket/a", 5, "x"),), show_credentials=True).digest
        == digest
    )
    others = [replace(one, url="s3://bucket/b"), replace(one, size=6), replace(one, version="y")]
    assert len({digest, *(AnalysisRequest((other,)).digest for other in others)}) == 4
    assert AnalysisRequest((one, one)).digest != digest


def test_a_name_shows_no_key_and_a_path_is_as_it_is() -> None:
    assert InputFile("/srv/a?token=b.pcap", 0, "").name == "/srv/a?token=b.pcap"
    assert InputFile("s3://bucket/a.pcap?sig=secret", 0, "").name == "s3://bucket/a.pcap?sig=…"
