"""Files that may overlap in time are recognized before they are surveyed in pieces."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.reassembly.segments import SegmentColumns
from flexwire.storage.file_search import list_captures
from flexwire.survey import survey
from flexwire.survey.request import make_reader
from flexwire.survey.state import read_clocks
from flexwire.survey.survey import AnalysisRequest, Survey, is_overlap_likely, list_readable_files
from tests.capture.exchanges import Talk
from tests.capture.interleaved import EVERYTHING, HOSTS, LOSSY, ONE_CONNECTION, Shape, write_capture

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = replace(HOSTS, compressed=0.0, shared=1.0)
SHAPES = {
    "hosts": (PLAIN, True),
    "apart": (replace(PLAIN, shared=0.0, files=1, reuse=0.0), False),
    "lossy": (LOSSY, False),
    "everything": (EVERYTHING, False),
    "rotated": (replace(ONE_CONNECTION, files=5), False),
    "gzip": (replace(PLAIN, compressed=1.0), True),
    "gzip apart": (replace(PLAIN, compressed=1.0, shared=0.0, files=1, reuse=0.0), False),
    "gzip rotated": (replace(ONE_CONNECTION, files=5, compressed=1.0), False),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_files_are_likely_to_overlap_that_show_a_connection_at_once(
    name: str, tmp_path: Path
) -> None:
    shape: Shape
    shape, expected = SHAPES[name]
    for seed in range(2):
        files = write_capture(tmp_path / str(seed), seed, shape)
        asked = AnalysisRequest(tuple(list_captures(files)))
        ordered = list_readable_files(asked, Survey())
        assert ordered is not None
        assert is_overlap_likely(asked, ordered) is expected


@pytest.mark.slow
def test_of_a_gzipped_file_no_more_is_read_than_until_the_others_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = replace(PLAIN, compressed=1.0, files=1, talk=Talk(exchanges=200))
    asked = AnalysisRequest(
        tuple(list_captures(write_capture(tmp_path, 1, shape))), chunk_bytes=5000
    )
    ordered = list_readable_files(asked, Survey()) or []
    seen: list[int] = []

    def counted(segments: SegmentColumns) -> Any:
        seen.append(len(segments))
        return read_clocks(segments)

    monkeypatch.setattr(survey, "read_clocks", counted)
    assert is_overlap_likely(asked, ordered)
    few = sum(seen)
    every = sum(
        len(item)
        for file in ordered
        for item in make_reader(asked, [file])
        if isinstance(item, SegmentColumns)
    )
    assert few < every / 4
    # These files begin later than the search reads.
    monkeypatch.setattr(survey, "INFLATED_BYTES", 1)
    seen.clear()
    is_overlap_likely(asked, ordered)
    assert sum(seen) < few
