"""Files that are likely to overlap are known before they are surveyed in pieces."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from flexwire.storage.listing import list_sources
from flexwire.tables.overlaps import likely_overlap
from flexwire.tables.survey import Asked, Survey, in_order
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
    # To know it, they would have to be read to their end.
    "gzip": (replace(PLAIN, compressed=1.0), False),
}


@pytest.mark.parametrize("name", SHAPES)
def test_files_are_likely_to_overlap_that_show_a_connection_at_once(
    name: str, tmp_path: Path
) -> None:
    shape: Shape
    shape, expected = SHAPES[name]
    for seed in range(2):
        files = write_capture(tmp_path / str(seed), seed, shape)
        asked = Asked(tuple(list_sources(files)))
        ordered = in_order(asked, Survey())
        assert ordered is not None
        assert likely_overlap(asked, ordered) is expected
