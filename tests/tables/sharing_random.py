"""Survey random captures of several hosts in random shares, and compare with one task.

``python -m tests.tables.sharing_random FIRST COUNT`` tries this many seeds. Each capture has its
own shape. The program fails at the first capture with a difference.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from flexwire.storage.file_search import list_captures
from flexwire.survey.request import Continuation
from flexwire.survey.survey import AnalysisRequest
from tests.capture.interleaved import write_capture
from tests.tables.folding_random import random_shape
from tests.tables.sharing import Kept, Make, assert_same, found_by, in_one, in_shares


def compare(seed: int, place: Path) -> int:
    """Compare the shares of a capture with the whole capture. Return the number of segments."""
    source = random.Random(seed)
    shape = replace(
        random_shape(source),
        hosts=source.choice([0, 2, 3, 5]),
        shared=source.random(),
        unseen=source.choice([0, 0.01, 0.1]),
        skew=source.choice([0, 300, 30_000]),
        taps=source.choice([1, 3]),
    )
    files = write_capture(place, seed, shape)
    total = sum(one.stat().st_size for one in files)
    asked = AnalysisRequest(
        tuple(list_captures(files)),
        record_bytes=True,
        show_credentials=source.random() < 0.5,
        range_bytes=max(1500, total // source.choice([1, 2, 10, 30])),
        chunk_bytes=source.choice([1000, 5000, 1 << 15, 1 << 22]),
        continuation=source.choice([None, Continuation("run")]),
    )
    found = []
    makes: list[Make] = [in_one, partial(in_shares, shares=source.choice([2, 3, 8, 20]))]
    for make in makes:
        kept: Kept = {}
        found.append(found_by(asked, make(asked, kept), kept))
    assert_same(found[1], found[0], seed)
    return sum(one.packets for one in found[0]["survey"].notes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    given = parser.parse_args()
    packets = 0
    for seed in range(given.first, given.first + given.count):
        with tempfile.TemporaryDirectory() as place:
            packets += compare(seed, Path(place) / "capture")
    print(f"{packets} packets")  # noqa: T201 - this is a command


if __name__ == "__main__":
    main()
