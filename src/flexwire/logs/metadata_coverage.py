"""What the log of a cluster's metadata and its snapshots cover: which states are known.

The state as of an offset is known where a snapshot or the log's offset 0 is followed by records up
to there, without a gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from flexwire.errors import CaptureError
from flexwire.protocol.credentials import METADATA_TOPIC


class SnapshotName(NamedTuple):
    """What the name of a snapshot says: the state as of ``offset``, whose last epoch this was."""

    offset: int
    epoch: int

    @property
    def file(self) -> str:
        """The file's name."""
        return f"{self.offset:020}-{self.epoch:010}.checkpoint"


@dataclass(frozen=True, slots=True)
class Run:
    """Records of the log from ``start`` to before ``end``, without a gap.

    ``voters`` are how many the quorum had by the last record that says so, 0 where it cannot be
    read, and ``later`` is the
    first batch with a timestamp after the one asked for.
    """

    start: int
    end: int
    voters: int | None = None
    later: int | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot: the time of its last record, in ms, and why it is not used, if it is not."""

    name: SnapshotName
    timestamp: int | None
    problem: str | None = None


class Base(NamedTuple):
    """What a state is made from: a snapshot or offset 0, and the log from ``start`` to ``end``."""

    snapshot: SnapshotName | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Covered:
    """What the log and its snapshots cover."""

    runs: tuple[Run, ...]
    snapshots: tuple[Snapshot, ...]

    @property
    def end(self) -> int:
        """The offset after all that is there."""
        ends = [one.end for one in self.runs]
        return max([*ends, *(one.name.offset for one in self._usable())], default=0)

    def _usable(self) -> list[Snapshot]:
        return [one for one in self.snapshots if one.problem is None]

    def spans(self) -> list[Base]:
        """Give each offset that a state can begin with, in order, and how far it can go."""
        bases: dict[int, SnapshotName | None] = {}
        if any(one.start == 0 for one in self.runs):
            bases[0] = None
        bases |= {one.name.offset: one.name for one in self._usable()}
        return [Base(name, offset, self._reach(offset)) for offset, name in sorted(bases.items())]

    def run_start(self, offset: int) -> int | None:
        """Give where the log's run begins that goes on at ``offset``; None where there is none."""
        starts = [one.start for one in self.runs if one.start <= offset <= one.end]
        return max(starts, default=None)

    def _reach(self, offset: int) -> int:
        ends = [one.end for one in self.runs if one.start <= offset <= one.end]
        return max(ends, default=offset)

    def base(self, offset: int, *, oldest: bool = False) -> Base:
        """Give what the state as of ``offset`` is made from: the newest base, or the oldest.

        Raises `CaptureError` where that state is not known.
        """
        reaching = [one for one in self.spans() if one.start <= offset <= one.end]
        if not reaching:
            reason = f"the state as of offset {offset} is not known; {self._known()}"
            raise CaptureError(reason, source=METADATA_TOPIC)
        chosen = reaching[0] if oldest else reaching[-1]
        return chosen._replace(end=offset)

    def at_time(self, time: int) -> int:
        """Give the offset of the first record after ``time``, in ms; the end where there is none.

        Raises `CaptureError` where there may have been one before all that is known.
        """
        timestamps = {one.name: one.timestamp for one in self._usable()}
        later = [one.later for one in self.runs if one.later is not None]
        first = min(later, default=self.end)
        for one in self.spans():
            said = None if one.snapshot is None else timestamps[one.snapshot]
            if one.start <= first <= one.end and (said is None or said <= time):
                return first
        reason = f"the state as of {time} ms is not known; {self._known()}"
        raise CaptureError(reason, source=METADATA_TOPIC)

    def committed(self) -> int:
        """Give an offset below which all records of the log are known to be committed.

        A snapshot holds nothing else, and a quorum of one voter commits what it writes.
        """
        snapshots = [
            one.name.offset
            for one in self._usable()
            if any(run.start <= one.name.offset <= run.end for run in self.runs)
        ]
        alone = [one.end for one in self.runs[-1:] if one.voters == 1]
        return max([*snapshots, *alone], default=0)

    def _known(self) -> str:
        spans: list[tuple[int, int]] = []
        for one in self.spans():
            if spans and one.start <= spans[-1][1]:
                spans[-1] = (spans[-1][0], max(spans[-1][1], one.end))
            else:
                spans.append((one.start, one.end))
        known = ", ".join(
            f"from {start} to {end}" if end > start else f"at {start}" for start, end in spans
        )
        unused = "".join(
            f"; {one.name.file} is not used: {one.problem}"
            for one in self.snapshots
            if one.problem is not None
        )
        return f"it is known {known}{unused}" if known else f"no state of it is{unused}"
