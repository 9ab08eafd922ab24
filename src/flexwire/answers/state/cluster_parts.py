"""What a task reads of the metadata's log: records of it, of a snapshot, or what controls say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from flexwire.columnar.record_columns import MOMENT, moment
from flexwire.errors import CaptureError
from flexwire.logs.metadata import METADATA_PARTITION, find_metadata, quorum_records
from flexwire.logs.reading import HEADERS, KAFKA_COLUMNS, Damaged, LogPiece, LogRows, read_piece
from flexwire.tasks import record_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.logs.metadata import QuorumRecord, SnapshotName, Voter
    from flexwire.storage.source import Source

LOG_COLUMNS: Final = {
    **{name: kind for name, kind in KAFKA_COLUMNS.items() if name != HEADERS},
    "partition_leader_epoch": pa.int32(),
}
RECORDS: Final = pa.schema(
    [*LOG_COLUMNS.items(), ("snapshot_offset", pa.int64()), ("snapshot_epoch", pa.int32())]
)
"""A record of the log, or of a snapshot, whose offset and epoch are then not null."""
_VOTER: Final = pa.struct(
    {
        "voter": pa.int32(),
        "directory_id": pa.string(),
        "endpoints": pa.list_(
            pa.struct({"name": pa.string(), "host": pa.string(), "port": pa.int32()})
        ),
        "least_kraft_version": pa.int16(),
        "most_kraft_version": pa.int16(),
    }
)
QUORUM: Final = pa.schema(
    {
        "snapshot_offset": pa.int64(),
        "offset": pa.int64(),
        "timestamp": MOMENT,
        "kind": pa.string(),
        "kraft_version": pa.int16(),
        "voters": pa.list_(_VOTER),
        "error": pa.string(),
    }
)
"""What control records say, as `QuorumRecord` has it."""


@dataclass(frozen=True, slots=True)
class LogPart:
    """Records of the log: a piece of a segment."""

    piece: LogPiece
    snapshot: SnapshotName | None = None

    @classmethod
    def of_snapshot(cls, directory: str, name: SnapshotName, source: Source) -> LogPart:
        """Give the records of a snapshot, which is laid out as a segment."""
        return cls(
            LogPiece(METADATA_PARTITION, directory, source, 0, source.size, is_end=False), name
        )

    def read(self) -> Iterator[pa.RecordBatch]:
        """Give them as `RECORDS`; raises `CaptureError` for what is damaged, but for a torn end."""
        rows, name = LogRows(pa.schema(LOG_COLUMNS.items())), self.snapshot
        for batch in read_piece(self.piece, rows.read):
            if isinstance(batch, Damaged):
                if name is None and batch.is_torn:
                    continue
                raise CaptureError(batch.reason, source=self.piece.log.name, offset=batch.position)
            made = rows.records(self.piece, batch)
            own = (None, None) if name is None else name
            added = [
                pa.repeat(pa.scalar(value, one.type), made.num_rows)
                for value, one in zip(own, list(RECORDS)[-2:], strict=True)
            ]
            yield pa.RecordBatch.from_arrays([*made.columns, *added], schema=RECORDS)


@dataclass(frozen=True, slots=True)
class QuorumPart:
    """What control records say: those of a snapshot, and of the log from ``start`` to ``end``."""

    directory: str
    snapshot: SnapshotName | None
    start: int | None
    end: int

    def read(self) -> Iterator[pa.RecordBatch]:
        """Give them as `QUORUM`: the few control records, past all others."""
        files = find_metadata(self.directory)
        rows: list[tuple[int | None, QuorumRecord]] = [
            (name.offset, one)
            for name, source in files.snapshots
            if name == self.snapshot
            for one in quorum_records(source)
        ]
        if self.start is not None:
            for source in files.segments:
                rows += [(None, one) for one in quorum_records(source, self.start, self.end)]
        made = [(at, one.offset, moment(one.timestamp), *_told(one)) for at, one in rows]
        yield record_batch(QUORUM, made)


def _told(one: QuorumRecord) -> tuple[Any, ...]:
    voters = None if one.voters is None else [_struct(voter) for voter in one.voters]
    return one.kind, one.kraft_version, voters, one.error


def _struct(voter: Voter) -> dict[str, Any]:
    ends = voter.endpoints
    told = None if ends is None else [end._asdict() for end in ends]
    return voter._asdict() | {"endpoints": told}
