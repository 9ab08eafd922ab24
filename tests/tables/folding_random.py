"""Survey random captures in pieces of random sizes, and compare with the survey in order.

``python -m tests.tables.folding_random FIRST COUNT``: captures of this many seeds, each with its
own shape. The program prints how much was read again, and fails at the first capture with a
different survey or a different row.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from flexwire.survey.state import UnprovenError
from tests.capture.exchanges import Talk
from tests.capture.interleaved import ALL_LINKS, Shape, write_capture
from tests.tables.folding import surveyed_in_pieces
from tests.tables.test_ranges import rows_of, surveyed

# Some values for each field of a shape, with likelier values more than once.
_TALK: dict[str, list[Any]] = {
    "exchanges": [5, 12, 30],
    "depth": [1, 3, 10],
    "sasl": [0, 0, 0.3, 1],
    "others": [0, 0, 0.2],
    "any_api": [0, 0.3],
    "strange": [0, 0, 0.3],
    "large": [0, 0.05, 0.3],
    "hidden": [0, 0, 0.3, 1],
}
_SHAPE: dict[str, list[Any]] = {
    "connections": [1, 2, 4, 8],
    "ip": [(4,), (4, 6)],
    "segment": [(1, 50), (200, 1448), (1448, 1448), (1000, 9000)],
    "joined": [0, 0.5, 0.9],
    "acks": [0, 0.3, 1],
    "options": [0, 0.3],
    "reuse": [0, 0, 0.3],
    "reset": [0, 0.3],
    "unended": [0, 0.5],
    "begun": [0, 0, 0.5],
    "loss": [0, 0, 0, 0.002, 0.05],
    "body_loss": [0, 0, 0.03, 0.3],
    "body_cut": [0, 0, 0.03],
    "repeats": [0, 0, 0.02],
    "retransmissions": [0, 0, 0.03],
    "reorder": [0, 0, 0.05],
    "noise": [0, 0.03],
    "same_time": [0, 0.3],
    "backwards": [0, 0, 0.03],
    "links": [(101,), (1,), ALL_LINKS],
    "formats": [("pcapng",), ("pcap",), ("nanoseconds",), ("pcapng", "pcap", "nanoseconds")],
    "files": [1, 1, 2, 5],
    "taps": [1] * 9 + [2],
    "snaplen": [0, 0, 0, 300],
    "marks": [False, True],
    "false_marks": [0, 0, 0.02],
    "compressed": [0, 0, 0.3],
    "torn": [0, 0, 0.3],
    "blocks": [0, 0, 0, 0.01],
}


def random_shape(source: random.Random) -> Shape:
    """Return a shape with random values."""
    talk = Talk(**{name: source.choice(values) for name, values in _TALK.items()})
    chosen = {name: source.choice(values) for name, values in _SHAPE.items()}
    return Shape(talk=talk, **chosen)


def compare(seed: int, place: Path) -> tuple[int, int] | None:
    """Return how many segments were read again, and how many packets there are, or None."""
    source = random.Random(seed)
    files = write_capture(place, seed, random_shape(source))
    total = sum(one.stat().st_size for one in files)
    size = max(1500, total // source.choice([2, 3, 5, 10, 30]))
    chunk_bytes = source.choice([1000, 5000, 1 << 15, 1 << 22])
    range_bytes = size * source.choice([1, 2, 4])
    whole = surveyed(files)
    try:
        parts = surveyed_in_pieces(files, size, chunk_bytes=chunk_bytes, range_bytes=range_bytes)
    except UnprovenError:
        return None
    assert replace(parts[1], ranges=1) == whole[1], seed
    expected, got = rows_of(*whole), rows_of(*parts)
    for table in expected.keys() | got.keys():
        assert got.get(table) == expected.get(table), (seed, table)
    return parts[1].redone, sum(one.packets for one in whole[1].notes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    given = parser.parse_args()
    redone = packets = in_order = 0
    for seed in range(given.first, given.first + given.count):
        with tempfile.TemporaryDirectory() as place:
            found = compare(seed, Path(place) / "capture")
        if found is None:
            in_order += 1
            continue
        redone, packets = redone + found[0], packets + found[1]
    print(f"{packets} packets, {redone} read again; {in_order} captures in order")  # noqa: T201 - this is a command


if __name__ == "__main__":
    main()
