"""Make captures that grow step by step, and read them with a follower."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from flexwire.storage.output_directory import OutputDirectory
from flexwire.survey.follower import CaptureFollower, decode_stretch
from flexwire.survey.saved_stream import StreamStates
from flexwire.tables.row_filter import EVERYTHING, RowFilter

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from flexwire.survey.survey import AnalysisRequest

Rows = dict[str, list[dict[str, Any]]]


def grown(
    source: random.Random, files: Sequence[Path], directory: Path, steps: int
) -> Iterator[None]:
    """Write copies of files, one after the other, with pauses after random bytes."""
    directory.mkdir(parents=True, exist_ok=True)
    sizes = [one.stat().st_size for one in files]
    pauses = {source.randrange(sum(sizes)) for _ in range(steps - 1)}
    before = 0
    for file, size in zip(files, sizes, strict=True):
        cuts = sorted(one - before for one in pauses if before <= one < before + size)
        data = file.read_bytes()
        with (directory / file.name).open("wb") as out:
            for start, stop in zip([0, *cuts], [*cuts, size], strict=True):
                out.write(data[start:stop])
                out.flush()
                if stop < size:
                    yield
        before += size
    yield


class Query:
    """A stream over a directory, as Spark drives it."""

    def __init__(
        self,
        directory: Path | str,
        asked: AnalysisRequest,
        wanted: RowFilter = EVERYTHING,
        states: Path | None = None,
    ) -> None:
        self._directory = directory
        self._asked = asked
        self._wanted = wanted
        self._states = states
        self.offset: dict[str, int] = {}
        self.rows: Rows = defaultdict(list)
        # Each batch's offsets and rows.
        self.planned: list[tuple[dict[str, int], dict[str, int], Rows]] = []
        self.restart()

    def restart(self) -> None:
        """Continue like another process, which knows only the checkpoint and the saved state."""
        self.offset = json.loads(json.dumps(self.offset))
        self._follower = CaptureFollower(
            [self._directory],
            self._asked,
            self._wanted,
            states=None
            if self._states is None
            else StreamStates(OutputDirectory(str(self._states))),
        )

    def run(self, **limits: Any) -> None:
        """Run a batch."""
        end = self._follower.latest(self.offset, **limits)
        found = self.between(self.offset, end)
        for table, rows in found.items():
            self.rows[table] += rows
        if self.offset != end:
            self.planned.append((self.offset, end, found))
        self.offset = end

    @property
    def batches(self) -> int:
        """Return the number of batches with rows."""
        return len(self.planned)

    def between(self, start: dict[str, int], end: dict[str, int]) -> Rows:
        """Return the rows in a batch from one offset to another."""
        found: Rows = defaultdict(list)
        for stretch in self._follower.stretches(start, end):
            for table, rows in decode_stretch(self._asked, self._wanted, stretch):
                found[table] += rows.to_pylist()
        return found

    def sorted(self) -> Rows:
        """Return all rows in a fixed order, with the names of files instead of their paths."""
        return {table: in_order(rows) for table, rows in self.rows.items() if rows}


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return sorted rows. The place of a frame contains the file's name without its directory."""
    short = [
        {**one, "source": one["source"].rpartition("/")[2]} if "source" in one else one
        for one in rows
    ]
    return sorted(short, key=repr)
