"""The cluster's metadata log and its snapshots: their files, and the offsets that they cover.

The file name of a snapshot contains two numbers: the offset of the state, and the epoch of the last
record before that offset. Offsets within the snapshot begin at 0.

Control records describe the quorum. A leader writes control records between the records of the
state, and a snapshot repeats the last control records. Since kraft.version 1, records list the
voters. In earlier versions, each controller's configuration lists the voters, and the record at the
beginning of a leader's epoch lists their ids.

The state at an offset is known if all records before that offset are present, from a snapshot or
from offset 0 on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.errors import (
    CaptureError,
    CodecError,
    FlexwireError,
    RecordError,
    UnknownMessageError,
)
from flexwire.logs.files import (
    LOG,
    LOG_NAMES,
    LogQuery,
    Partition,
    is_log_file,
    is_set_aside,
    open_file,
    parse_file,
)
from flexwire.logs.replicas import replicas_among
from flexwire.logs.segments import BatchPlace, place_at, read_batch, walk
from flexwire.protocol.credentials import METADATA_TOPIC
from flexwire.protocol.record_types import ControlRecord, decode_control_record
from flexwire.storage.file_search import list_files
from flexwire.storage.filesystems import shown
from flexwire.wire.batch_layout import CONTROL_MASK, HEADER, HEADER_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from flexwire.logs.segments import LogFile
    from flexwire.storage.input_file import InputFile


class SnapshotName(NamedTuple):
    """The name of a snapshot, which contains its ``offset`` and its last ``epoch``."""

    offset: int
    epoch: int

    @property
    def file(self) -> str:
        """The file's name."""
        return f"{self.offset:020}-{self.epoch:010}.checkpoint"


@dataclass(frozen=True, slots=True)
class OffsetRun:
    """Records of the log from ``start`` up to ``end``, without a gap.

    ``voters`` is the size of the quorum according to the last record that contains it, or 0 if that
    record cannot be read. ``later`` is the first batch with a timestamp after the requested time.
    """

    start: int
    end: int
    voters: int | None = None
    later: int | None = None


@dataclass(frozen=True, slots=True)
class MetadataSnapshot:
    """A snapshot and the time of its last record in ms. ``problem`` explains why it is unusable."""

    name: SnapshotName
    timestamp: int | None
    problem: str | None = None


class StateBase(NamedTuple):
    """The base of a state: a snapshot or offset 0, and the log from ``start`` to ``end``."""

    snapshot: SnapshotName | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class MetadataCoverage:
    """The offsets that the log and its snapshots cover."""

    runs: tuple[OffsetRun, ...]
    snapshots: tuple[MetadataSnapshot, ...]

    @property
    def end(self) -> int:
        """The offset after all records that are present."""
        ends = [run.end for run in self.runs]
        return max([*ends, *(snapshot.name.offset for snapshot in self._usable())], default=0)

    def _usable(self) -> list[MetadataSnapshot]:
        return [snapshot for snapshot in self.snapshots if snapshot.problem is None]

    def spans(self) -> list[StateBase]:
        """Return the offsets at which a state can begin, in order, each with its end."""
        bases: dict[int, SnapshotName | None] = {}
        if any(run.start == 0 for run in self.runs):
            bases[0] = None
        bases |= {snapshot.name.offset: snapshot.name for snapshot in self._usable()}
        return [
            StateBase(name, offset, self._reach(offset)) for offset, name in sorted(bases.items())
        ]

    def run_start(self, offset: int) -> int | None:
        """Return the start of the run of records that reaches ``offset``, or None."""
        starts = [run.start for run in self.runs if run.start <= offset <= run.end]
        return max(starts, default=None)

    def _reach(self, offset: int) -> int:
        ends = [run.end for run in self.runs if run.start <= offset <= run.end]
        return max(ends, default=offset)

    def base(self, offset: int, *, oldest: bool = False) -> StateBase:
        """Return the newest (or oldest) base from which the state at ``offset`` can be built.

        Raises `CaptureError` if that state is unknown.
        """
        reaching = [span for span in self.spans() if span.start <= offset <= span.end]
        if not reaching:
            reason = f"the state as of offset {offset} is not known; {self._known()}"
            raise CaptureError(reason, source=METADATA_TOPIC)
        chosen = reaching[0] if oldest else reaching[-1]
        return chosen._replace(end=offset)

    def at_time(self, time: int) -> int:
        """Return the offset of the first record after ``time`` (in ms), or else the end.

        Raises `CaptureError` if an earlier record may exist outside the known offsets.
        """
        timestamps = {snapshot.name: snapshot.timestamp for snapshot in self._usable()}
        later = [run.later for run in self.runs if run.later is not None]
        first = min(later, default=self.end)
        for span in self.spans():
            said = None if span.snapshot is None else timestamps[span.snapshot]
            if span.start <= first <= span.end and (said is None or said <= time):
                return first
        reason = f"the state at {time} ms is not known; {self._known()}"
        raise CaptureError(reason, source=METADATA_TOPIC)

    def committed(self) -> int:
        """Return an offset below which all records of the log are certainly committed.

        A snapshot contains only committed records. If a quorum has only one voter, each record is
        committed when it is written.
        """
        snapshots = [
            snapshot.name.offset
            for snapshot in self._usable()
            if any(run.start <= snapshot.name.offset <= run.end for run in self.runs)
        ]
        alone = [last.end for last in self.runs[-1:] if last.voters == 1]
        return max([*snapshots, *alone], default=0)

    def _known(self) -> str:
        spans: list[tuple[int, int]] = []
        for span in self.spans():
            if spans and span.start <= spans[-1][1]:
                spans[-1] = (spans[-1][0], max(spans[-1][1], span.end))
            else:
                spans.append((span.start, span.end))
        ranges = ", ".join(
            f"from {start} to {end}" if end > start else f"at {start}" for start, end in spans
        )
        unused = "".join(
            f"; {snapshot.name.file} is not used: {snapshot.problem}"
            for snapshot in self.snapshots
            if snapshot.problem is not None
        )
        return f"it is known {ranges}{unused}" if ranges else f"no state is known{unused}"


METADATA_PARTITION: Final = Partition(METADATA_TOPIC, 0)
_NAME: Final = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_LEADER_CHANGE, _HEADER, _FOOTER, _VOTERS = (
    "LEADER_CHANGE",
    "SNAPSHOT_HEADER",
    "SNAPSHOT_FOOTER",
    "KRAFT_VOTERS",
)


def parse_snapshot(name: str) -> SnapshotName | None:
    """Return the offset and epoch in a file name, or None if a broker would not load the file.

    A broker removes files that end in ``.deleted`` or ``.part``.

    >>> parse_snapshot("00000000000000000186-0000000001.checkpoint")
    SnapshotName(offset=186, epoch=1)
    """
    match = _NAME.fullmatch(name)
    if match is None or int(match[1]) >= 1 << 63 or int(match[2]) >= 1 << 31:
        return None
    return SnapshotName(int(match[1]), int(match[2]))


@dataclass(frozen=True, slots=True)
class MetadataFiles:
    """The files in a directory of `METADATA_PARTITION`."""

    directory: str
    segments: tuple[InputFile, ...]
    snapshots: tuple[tuple[SnapshotName, InputFile], ...]


def find_metadata(path: str | Path) -> MetadataFiles:
    """Return the only directory of the metadata log at or below ``path``.

    Raises `CaptureError` if there is no such directory or more than one, and `StorageError` if a
    path cannot be read.
    """
    files: dict[str, dict[SnapshotName, InputFile]] = {}
    has_log = set[str]()
    for source in list_files([path], _is_wanted, "is a segment or snapshot of a log"):
        directory, _, name = source.url.rpartition("/")
        if directory.rpartition("/")[2] != str(METADATA_PARTITION) or is_set_aside(directory):
            continue
        snapshots = files.setdefault(directory, {})
        parsed, snapshot = parse_file(name), parse_snapshot(name)
        if snapshot is not None:
            snapshots[snapshot] = source
        elif parsed is not None and parsed.kind == LOG:
            has_log.add(directory)
    if len(files) != 1:
        there = ", ".join(map(shown, sorted(files))) or "none"
        reason = f"expected one {METADATA_PARTITION} directory at or below the path, got {there}"
        raise CaptureError(reason, source=shown(str(path)))
    [(directory, snapshots)] = files.items()
    segments: tuple[InputFile, ...] = ()
    if directory in has_log:
        listed = list_files([directory], is_log_file, LOG_NAMES)
        logs = replicas_among(listed, LogQuery(topics={METADATA_TOPIC}))
        segments = tuple(segment.log for log in logs for segment in log.segments)
    return MetadataFiles(directory, segments, tuple(sorted(snapshots.items())))


def _is_wanted(name: str) -> bool:
    return parse_file(name) is not None or parse_snapshot(name) is not None


def survey(
    files: MetadataFiles, time: int | None = None
) -> tuple[list[OffsetRun], list[MetadataSnapshot]]:
    """Return the existing runs and snapshots, from headers and control records, in one pass.

    If a log ends with a partial batch or with zeros, its end is before these bytes, because a
    broker removes them. With ``time`` in ms, each run contains the position of its first later
    record.
    """
    walked = _EpochRuns(time)
    for source in files.segments:
        walked.add(source)
    runs = walked.runs()
    return runs, [_examined(name, source, walked) for name, source in files.snapshots]


def newest_base(files: MetadataFiles) -> tuple[StateBase, int]:
    """Return the snapshot and the records of the final state, and the last record's epoch.

    Raises `CaptureError` if that state is unknown.
    """
    runs, snapshots = survey(files)
    covered = MetadataCoverage(tuple(runs), tuple(snapshots))
    base = covered.base(covered.end)
    epochs = [epoch for source in files.segments[-1:] for epoch in _epochs(source)]
    if base.snapshot is not None:
        epochs.append(base.snapshot.epoch)
    return base, max(epochs, default=0)


def _epochs(source: InputFile) -> Iterator[int]:
    with open_file(source) as log:
        yield from (epoch for _, epoch, _ in batch_headers(log))


class _EpochRuns:
    """The runs of a log, and the epoch at each of its offsets."""

    def __init__(self, time: int | None) -> None:
        self._time = time
        self._ended: list[OffsetRun] = []
        self._run: OffsetRun | None = None
        # The beginning of each new epoch.
        self.epochs: list[tuple[int, int]] = []

    def runs(self) -> list[OffsetRun]:
        """Return all runs in order. An empty run marks the beginning of the log."""
        return [*self._ended, *([] if self._run is None else [self._run])]

    def add(self, source: InputFile) -> None:
        """Read the headers of a segment."""
        name = parse_file(source.url.rpartition("/")[2])
        base = 0 if name is None else name.base_offset
        with open_file(source) as log:
            if not log.size:
                self._continue_at(base)
            for place, epoch, attributes in batch_headers(log):
                self._continue_at(place.base_offset)
                run = self._run
                assert run is not None  # noqa: S101 - `_continue_at` created the run
                voters, later = run.voters, run.later
                if attributes & CONTROL_MASK:
                    said = _voters(log, place)
                    voters = voters if said is None else said
                if self._time is not None and later is None and place.max_timestamp > self._time:
                    later = place.base_offset
                self._run = OffsetRun(run.start, place.last_offset + 1, voters, later)
                if not self.epochs or self.epochs[-1][1] != epoch:
                    self.epochs.append((place.base_offset, epoch))

    def _continue_at(self, offset: int) -> None:
        """Begin another run if records before ``offset`` are missing."""
        if self._run is not None and self._run.end == offset:
            return
        if self._run is not None:
            self._ended.append(self._run)
        self._run = OffsetRun(offset, offset)

    def epoch_at(self, offset: int) -> int | None:
        """Return the epoch of a record, or None if the log does not contain the record."""
        if not any(run.start <= offset < run.end for run in self.runs()):
            return None
        return next(epoch for start, epoch in reversed(self.epochs) if start <= offset)


def batch_headers(log: LogFile) -> Iterator[tuple[BatchPlace, int, int]]:
    """Yield the batches of a file in order, with their epochs and attributes. Damage is skipped."""
    position = 0
    while position < log.size:
        data = log.read(position, HEADER_SIZE)
        try:
            place = place_at(log, position)
        except RecordError:
            later = walk(log, position)
            places = (item for item in later if isinstance(item, BatchPlace))
            after = next(places, None)
            if after is None:
                return
            position = after.position
            continue
        _, _, epoch, _, _, attributes, *_ = HEADER.unpack(data)
        yield place, epoch, attributes
        position = place.position + place.size


def _voters(log: LogFile, place: BatchPlace) -> int | None:
    """Return the number of voters in a control batch, or 0 if the batch cannot be read."""
    try:
        controls = controls_of(log, place)
    except FlexwireError:
        return 0
    for control in controls:
        if control.name in {_LEADER_CHANGE, _VOTERS} and control.message is not None:
            voters: list[object] = control.message.voters  # type: ignore[attr-defined] # both have it
            return len(voters)
    return None


def controls_of(log: LogFile, place: BatchPlace) -> Sequence[ControlRecord]:
    """Return the records in a control batch. Other batches contain no control records."""
    batch = read_batch(log, place)
    if not batch.is_control:
        return []
    return [decode_control_record(record.key, record.value) for record in batch.records]


def _examined(name: SnapshotName, source: InputFile, walked: _EpochRuns) -> MetadataSnapshot:
    """Read both ends of a snapshot, and compare the snapshot with the log."""
    timestamp, problem = None, None
    try:
        with open_file(source) as log:
            timestamp, problem = _ends(log)
    except (RecordError, CodecError, UnknownMessageError) as error:
        problem = f"the snapshot cannot be read: {error}"
    epoch = walked.epoch_at(name.offset - 1)
    if problem is None and epoch not in {None, name.epoch}:
        problem = (
            f"the snapshot does not match the log: the log has epoch {epoch} at offset "
            f"{name.offset - 1}"
        )
    return MetadataSnapshot(name, timestamp, problem)


def _ends(log: LogFile) -> tuple[int | None, str | None]:
    """Return the time of a snapshot's last record, and the first problem in the snapshot."""
    timestamp, last, end = None, None, 0
    for place, _, _ in batch_headers(log):
        if place.position != (0 if last is None else last.position + last.size):
            break
        if place.base_offset != end:
            break
        if last is None:
            timestamp = _last_contained(log, place)
        last, end = place, place.last_offset + 1
    if last is None or timestamp is None:
        return None, "the file does not begin with a snapshot header"
    if last.position + last.size != log.size or not _is_footer(log, last):
        return timestamp, "the file does not end with a snapshot footer"
    return timestamp, None


def _last_contained(log: LogFile, place: BatchPlace) -> int | None:
    for control in controls_of(log, place)[:1]:
        if control.name == _HEADER and control.message is not None:
            said: int = control.message.last_contained_log_timestamp  # type: ignore[attr-defined] # of a header
            return said
    return None


def _is_footer(log: LogFile, place: BatchPlace) -> bool:
    return [control.name for control in controls_of(log, place)][-1:] == [_FOOTER]


LEADER_CHANGE, KRAFT_VERSION, KRAFT_VOTERS = "LEADER_CHANGE", "KRAFT_VERSION", "KRAFT_VOTERS"
_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"


class VoterEndpoint(NamedTuple):
    """One listener of a voter."""

    name: str
    host: str
    port: int


class Voter(NamedTuple):
    """A voter. If the voter comes from the record of a leader's election, only its id is known."""

    voter: int
    directory_id: str | None = None
    endpoints: tuple[VoterEndpoint, ...] | None = None
    least_kraft_version: int | None = None
    most_kraft_version: int | None = None


class QuorumRecord(NamedTuple):
    """The content of a control record (a version or voters), or the reason why it is unknown.

    ``timestamp`` is in ms.
    """

    offset: int
    timestamp: int
    kind: str | None
    kraft_version: int | None = None
    voters: tuple[Voter, ...] | None = None
    error: str | None = None


def quorum_records(
    source: InputFile, start: int = 0, end: int | None = None
) -> Iterator[QuorumRecord]:
    """Yield the quorum records in a segment or snapshot between two offsets, in order.

    A batch that extends beyond ``end`` is left out, because batches are not divided.
    """
    with open_file(source) as log:
        for place, _, attributes in batch_headers(log):
            is_within = place.base_offset >= start and (end is None or place.last_offset < end)
            if not (attributes & CONTROL_MASK and is_within):
                continue
            at = (place.base_offset, place.max_timestamp)
            try:
                controls = controls_of(log, place)
            except FlexwireError as error:
                yield QuorumRecord(*at, None, error=str(error))
                continue
            for number, control in enumerate(controls):
                said = _said(at[0] + number, at[1], control)
                if said is not None:
                    yield said


def _said(offset: int, timestamp: int, control: ControlRecord) -> QuorumRecord | None:
    """Return the content of a control record, or None if it does not concern the quorum."""
    fields: dict[str, Any]
    fields = {} if control.message is None else control.message.to_json(control.version)
    if control.name is None:
        error = f"no bundled release defines control record type {control.type}"
        return QuorumRecord(offset, timestamp, None, error=error)
    if control.name == KRAFT_VERSION:
        return QuorumRecord(offset, timestamp, KRAFT_VERSION, fields["kRaftVersion"])
    if control.name == LEADER_CHANGE:
        voters = tuple(Voter(voter["voterId"]) for voter in fields["voters"])
        return QuorumRecord(offset, timestamp, LEADER_CHANGE, voters=voters)
    if control.name == KRAFT_VOTERS:
        voters = tuple(map(_voter, fields["voters"]))
        return QuorumRecord(offset, timestamp, KRAFT_VOTERS, voters=voters)
    return None


def _voter(fields: dict[str, Any]) -> Voter:
    supported, directory = fields["kRaftVersionFeature"], fields["voterDirectoryId"]
    return Voter(
        fields["voterId"],
        None if directory == _NO_ID else directory,
        tuple(
            VoterEndpoint(endpoint["name"], endpoint["host"], endpoint["port"])
            for endpoint in fields["endpoints"]
        ),
        supported["minSupportedVersion"],
        supported["maxSupportedVersion"],
    )
