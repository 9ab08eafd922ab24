"""``python -m fuzz.damaged [--rounds N] [--seed N]``: read damaged captures in all ways.

Each round makes a random capture of Kafka's traffic, and damages some of its files. It is surveyed
and decoded in order, in ranges, and in pieces that begin with guesses, are handed over as tasks do,
and are folded. All ways must give the same rows and facts, which must equal those of the reference.
The reference reads one segment, frame and record after another. Every error must be flexwire's own,
and the same in each way. A round also fails if a piece hands over, or a range keeps, much more data
than the capture has.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from flexwire.errors import FlexwireError
from flexwire.survey.piece_merger import OverlapError
from flexwire.survey.state import UnprovenError
from flexwire.survey.survey import AnalysisRequest, Survey, list_readable_files
from flexwire.tables.frames import connection_rows
from fuzz.arguments import asked as asked_for
from fuzz.damage import damage_file
from fuzz.law import LawBrokenError
from tests.capture.interleaved import write_capture
from tests.reference.tables import tables as reference_tables
from tests.tables.folding import surveyed_in_pieces
from tests.tables.folding_random import random_shape
from tests.tables.test_ranges import Rows, rows_of, surveyed

Found = tuple[AnalysisRequest, Survey, dict[str, bytes]]

# The sizes of pieces and of single reads, for files of some kB.
_LEAST_PIECE, _FEW_BYTES = 100, 500
# At each cut, the states of connections and of frames are kept.
_MOST_KEPT, _KEPT_OF_A_RANGE = 8, 1 << 20


def write_damaged(place: Path, source: random.Random, seed: int) -> list[Path]:
    """Write a capture, and damage some of its files."""
    shape = random_shape(source)
    talk = replace(shape.talk, exchanges=min(shape.talk.exchanges, 12))
    files = write_capture(place, seed, replace(shape, talk=talk))
    for file in source.sample(files, source.randint(1, len(files))):
        file.write_bytes(damage_file(source, file.read_bytes()))
    return [_renamed(file, source) for file in files]


def _renamed(file: Path, source: random.Random) -> Path:
    """Sometimes rename a file so that its name is wrong about gzip."""
    if source.random() < 0.9:  # noqa: PLR2004 - now and then
        return file
    return file.rename(file.with_suffix("") if file.suffix == ".gz" else Path(f"{file}.gz"))


def check(seed: int, place: Path) -> str:
    """Check the law on a damaged capture; return what happened, in a word."""
    source = random.Random(seed)  # noqa: S311 - chance, not a secret
    files = write_damaged(place, source, seed)
    total = sum(one.stat().st_size for one in files)
    size = max(1500, total // source.choice([2, 3, 5, 10]))
    return check_files(files, size, source.choice([1000, 5000, 1 << 15, 1 << 22]))


def pieces(data: bytes) -> None:
    """Any file has the same result in order, by ranges and in pieces of any size."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(data[1:])
        file.flush()
        check_files([Path(file.name)], _LEAST_PIECE + 8 * sum(data[:1]), _FEW_BYTES)


def check_files(files: list[Path], size: int, chunk_bytes: int) -> str:
    """Check the law on a capture, with ranges and pieces of a size."""
    total = sum(one.stat().st_size for one in files)
    try:
        whole = surveyed(files, skip_unreadable=True)
    except FlexwireError as error:
        _same_error(files, size, error)
        return "refused"
    how: dict[str, Any] = {"range_bytes": size, "chunk_bytes": chunk_bytes, "skip_unreadable": True}
    rows = rows_of(*whole)
    _check_reference(*whole[:2], rows)
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
    # Compared as text, because errors with equal texts are not equal.
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


def _check_reference(asked: AnalysisRequest, survey: Survey, rows: Rows) -> None:
    """Check that all rows equal the reference's, which reads every segment as an object."""
    files = list_readable_files(asked, Survey()) or []
    expected = reference_tables([one.name for one in files])
    # The survey also reports files that it leaves out.
    expected.pop("packets")
    found = {**rows, "connections": connection_rows(survey.connections).to_pylist()}
    for table in expected.keys() | found.keys():
        got, told = (sorted(some.get(table, ()), key=repr) for some in (found, expected))
        for one, other in zip(got, told, strict=False):
            # Compared as text, because NaN is not equal to itself.
            if repr(one) != repr(other):
                raise LawBrokenError(f"columns give the row {one} of {table}, and objects {other}")
        if len(got) != len(told):
            sizes = f"{len(got)} rows of {table}, and objects {len(told)}"
            raise LawBrokenError(f"columns give {sizes}")


def main() -> int:
    """Run the requested rounds; raise an error if the law is broken."""
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
