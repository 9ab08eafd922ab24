"""``python -m fuzz.damaged [--rounds N] [--seed N]``: damaged captures, read in all ways.

Each round makes a capture of Kafka's traffic of any shape, damages some of its files, and surveys
and decodes it in order, cut into ranges, and in pieces that are guessed, handed over as tasks do
and folded. All must give the same rows and the same facts, and the frames that objects find, one
segment after the other. Every error must be one of ours, the same in each way. A round fails too
where a piece hands over or a range keeps much more than the capture has.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexwire.capture.files.links import Segment, read_segments
from flexwire.capture.reassembly.assembly import FrameAssembler, connection_key
from flexwire.errors import FlexwireError
from flexwire.survey.piece_merger import OverlapError, UnprovenError
from flexwire.survey.survey import Asked, Survey, in_order
from fuzz.arguments import asked as asked_for
from fuzz.damage import damage_file
from fuzz.law import LawBrokenError
from tests.capture.columns.reference import paired_rows
from tests.capture.interleaved import write_capture
from tests.tables.folding import surveyed_in_pieces
from tests.tables.folding_random import random_shape
from tests.tables.test_ranges import Rows, rows_of, surveyed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.capture.reassembly.connections import CapturedConnection, CapturedFrame

Found = tuple[Asked, Survey, dict[str, bytes]]

# What objects say of a frame before its body is decoded, and what the frames' table has as well.
_COLUMNS = (
    *("time", "connection", "direction", "frame_index", "message", "api_key", "api_version"),
    *("correlation_id", "client_id", "size", "latency_us", "answered", "source"),
)
# Of pieces, and of what is read at once, in a file of some kB.
_LEAST_PIECE, _FEW_BYTES = 100, 500
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# States of connections and of frames are kept at each cut.
_MOST_KEPT, _KEPT_OF_A_RANGE = 8, 1 << 20


def write_damaged(place: Path, source: random.Random, seed: int) -> list[Path]:
    """Write a capture, of which some files are damaged."""
    shape = random_shape(source)
    talk = replace(shape.talk, exchanges=min(shape.talk.exchanges, 12))
    files = write_capture(place, seed, replace(shape, talk=talk))
    for file in source.sample(files, source.randint(1, len(files))):
        file.write_bytes(damage_file(source, file.read_bytes()))
    return [_renamed(file, source) for file in files]


def _renamed(file: Path, source: random.Random) -> Path:
    """Now and then a name says that a file is gzip'd which is not, or the other way round."""
    if source.random() < 0.9:  # noqa: PLR2004 - now and then
        return file
    return file.rename(file.with_suffix("") if file.suffix == ".gz" else Path(f"{file}.gz"))


def check(seed: int, place: Path) -> str:
    """Hold a damaged capture to the law; what became of it, in a word."""
    source = random.Random(seed)  # noqa: S311 - chance, not a secret
    files = write_damaged(place, source, seed)
    total = sum(one.stat().st_size for one in files)
    size = max(1500, total // source.choice([2, 3, 5, 10]))
    return check_files(files, size, source.choice([1000, 5000, 1 << 15, 1 << 22]))


def pieces(data: bytes) -> None:
    """Any file gives the same in order, by ranges and in pieces, whose size the first byte says."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(data[1:])
        file.flush()
        check_files([Path(file.name)], _LEAST_PIECE + 8 * sum(data[:1]), _FEW_BYTES)


def check_files(files: list[Path], size: int, chunk_bytes: int) -> str:
    """Hold a capture to the law, in ranges and pieces of a size."""
    total = sum(one.stat().st_size for one in files)
    try:
        whole = surveyed(files, skip_unreadable=True)
    except FlexwireError as error:
        _same_error(files, size, error)
        return "refused"
    how: dict[str, Any] = {"range_bytes": size, "chunk_bytes": chunk_bytes, "skip_unreadable": True}
    rows = rows_of(*whole)
    _check_frames(whole[0], rows)
    ranges = surveyed(files, **how)
    _check_same("ranges", whole, rows, ranges, total)
    try:
        pieces = surveyed_in_pieces(files, size, **how)
    except UnprovenError as error:
        return "merged" if isinstance(error, OverlapError) and whole[1].is_merged else "unproven"
    _check_same("pieces", whole, rows, pieces, total)
    return "again" if pieces[1].redone else "proven"


def _same_error(files: list[Path], size: int, error: FlexwireError) -> None:
    try:
        surveyed_in_pieces(files, size, skip_unreadable=True)
    except FlexwireError as other:
        if str(other) == str(error):
            return
        raise LawBrokenError(f"pieces say {other!r}, and the whole {error!r}") from other
    raise LawBrokenError(f"pieces do not say {error!r}")


def _check_same(way: str, whole: Found, rows: Rows, found: Found, total: int) -> None:
    # As text: an error is unlike another that says the same.
    told, expected = (repr(replace(one[1], ranges=1, redone=0)) for one in (found, whole))
    if told != expected:
        raise LawBrokenError(f"{way} find out {told}, and the whole {expected}")
    got = rows_of(*found)
    for table in rows.keys() | got.keys():
        if got.get(table) != rows.get(table):
            raise LawBrokenError(f"{way} give other rows of {table}")
    kept = sum(map(len, found[2].values()))
    if kept > found[1].ranges * (_MOST_KEPT * total + _KEPT_OF_A_RANGE):
        raise LawBrokenError(f"{way} keep {kept} bytes of {total}")


def _check_frames(asked: Asked, rows: Rows) -> None:
    """Hold the frames to what objects find, one segment after the other."""
    files = in_order(asked, Survey())
    expected = paired_rows(*_by_objects([one.name for one in files or []]))
    objects = sorted((tuple(row[name] for name in _COLUMNS) for row in expected), key=repr)
    columns = sorted((_frame(row) for row in rows.get("frames", [])), key=repr)
    for one, other in zip(columns, objects, strict=False):
        if one != other:
            raise LawBrokenError(f"columns give the frame {one}, and objects {other}")
    if len(columns) != len(objects):
        raise LawBrokenError(f"columns give {len(columns)} frames, and objects {len(objects)}")


def _frame(row: dict[str, Any]) -> tuple[Any, ...]:
    time_us = (row["time"] - _EPOCH) // timedelta(microseconds=1)
    return tuple(time_us if name == "time" else row[name] for name in _COLUMNS)


def _by_objects(
    files: list[str],
) -> tuple[list[tuple[str, CapturedFrame]], list[CapturedConnection]]:
    assemblers: dict[str, FrameAssembler] = {}
    last: dict[str, str] = {}
    frames: list[tuple[str, CapturedFrame]] = []
    ended: list[CapturedConnection] = []
    for _, file, _, one in sorted(_clocked(files), key=itemgetter(0, 1, 2)):
        key = connection_key(one)
        last[key] = file
        assembler = assemblers.setdefault(key, FrameAssembler())
        frames += ((file, frame) for frame in assembler.push(one))
        ended += assembler.ended()
    for key, assembler in assemblers.items():
        frames += ((last[key], frame) for frame in assembler.finish())
        ended += assembler.ended()
    return frames, ended


def _clocked(files: list[str]) -> Iterator[tuple[int, str, int, Segment]]:
    """The segments of each file, with the latest time in it until then and their place in it."""
    for file in files:
        clock = 0
        for place, one in enumerate(read_segments(file)):
            if isinstance(one, Segment):
                clock = max(clock, one.timestamp_us)
                yield clock, file, place, one


def main() -> int:
    """Run what the command line asks for; a law that does not hold is an error."""
    given = asked_for("fuzz.damaged", __doc__, rounds=300, of="damaged captures to read")
    sys.stdout.write(f"== {given.rounds} damaged captures, --seed {given.seed}\n")
    sys.stdout.flush()
    became: Counter[str] = Counter()
    for seed in range(given.seed, given.seed + given.rounds):
        with tempfile.TemporaryDirectory(prefix="flexwire-damaged-") as place:
            try:
                became[check(seed, Path(place) / "capture")] += 1
            except BaseException as error:
                error.add_note(f"of --seed {seed} --rounds 1")
                raise
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    sys.stdout.write(f"   {dict(became.most_common())}, {most} MiB of memory at most\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
