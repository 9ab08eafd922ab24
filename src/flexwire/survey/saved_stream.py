"""The state of a stream of captures in a file, from which a restarted stream continues.

When a batch is planned, its final state is written to a file, before its rows are read. Spark plans
a batch again if it was not committed, so the state at the batch's start is kept until the next
batch is planned. A file's name ends with a digest of the offset of its state.

The file has the form of `flexwire.survey.saved_state`: checked data, readable only by its owner,
without bytes that may be credentials. If such bytes were left out, the stream reads its files
again, provided that they still exist.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple, TypeVar

import msgspec

from flexwire.capture.files.reading import Interface, PcapHead, SectionHead
from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.capture.reassembly.idling import MOST_PAUSED
from flexwire.capture.reassembly.saved import (
    Count,
    EvidenceRecord,
    Number,
    SavedRecord,
    evidence_of,
    record_of_evidence,
)
from flexwire.capture.reassembly.segments import FilePosition
from flexwire.schema.catalog import catalog
from flexwire.survey.follower_state import MOST_FORGOTTEN, FollowerState
from flexwire.survey.saved_state import (
    MOST_STATE_BYTES,
    SavedState,
    SavedStateError,
    StateRecord,
    pack,
    unpack,
)
from flexwire.tables.row_filter import FRAMES, RECORDS
from flexwire.wire.limits import INT64_MAX, INT64_MIN, UINT16_MAX, UINT32_MAX
from flexwire.wire.packet_layout import MAX_INTERFACES, MILLION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexwire.capture.files.reading import Head
    from flexwire.storage.output_directory import OutputDirectory
    from flexwire.survey.request import AnalysisRequest
    from flexwire.tables.row_filter import RowFilter

    FileOffsets = Mapping[str, int]

MOST_HELD_BYTES: Final = MOST_STATE_BYTES // 2
"""The largest number of bytes of unfinished frames in the state of a stream."""
_MOST_DIGITS: Final = 128  # A pcapng file has a resolution of at most 2^127 or 10^255.

T = TypeVar("T")
Order = Literal["<", ">"]
Uint16 = Annotated[int, msgspec.Meta(ge=0, le=UINT16_MAX)]
Uint32 = Annotated[int, msgspec.Meta(ge=0, le=UINT32_MAX)]
Int64 = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]


class InterfaceRecord(SavedRecord):
    """A capture interface. The resolution of its clock is a number in big-endian bytes."""

    linktype: Uint16
    snaplen: Uint32
    per_second: Annotated[bytes, msgspec.Meta(min_length=1, max_length=_MOST_DIGITS)]
    offset_seconds: Int64


class SectionRecord(SavedRecord):
    """What a pcapng file has declared so far."""

    order: Order
    interfaces: Annotated[list[InterfaceRecord], msgspec.Meta(max_length=MAX_INTERFACES)]
    last_us: Count


class PcapRecord(SavedRecord):
    """What a pcap file has declared so far."""

    order: Order
    per_second: Literal[1_000_000, 1_000_000_000]
    linktype: Uint16


class PositionRecord(SavedRecord):
    """A position in a file. At most one of ``section`` and ``pcap`` is present."""

    offset: Count
    ordinal: Count
    section: SectionRecord | None
    pcap: PcapRecord | None
    unreadable: list[str]
    skipped: list[str]
    is_end: bool


class FileRecord(SavedRecord):
    """A file in an offset: how far it was read, and the time of its first segment."""

    name: str
    read: Count
    begins_us: Number | None
    position: PositionRecord | None


class FollowedRecord(SavedRecord):
    """The content of the file, without the analyses in which connections began."""

    release: str | None
    catalog: str
    gives_frames: bool
    gives_records: bool
    is_complete: bool
    files: list[FileRecord]
    state: StateRecord
    forgotten: Annotated[dict[str, Count], msgspec.Meta(max_length=MOST_FORGOTTEN)]
    most_keys: Count
    evidence: dict[str, EvidenceRecord]
    proven: set[str]


class FollowedFile(NamedTuple):
    """The beginning of a file, how far it was read, and where a reader would continue."""

    read: int
    begins_us: int | None
    position: FilePosition | None


@dataclass(frozen=True, slots=True)
class SavedStream:
    """The state of a stream of captures at an offset.

    The state ``is_complete`` if no bytes were left out on which a later row could depend.
    """

    files: dict[str, FollowedFile]
    state: FollowerState
    is_complete: bool = True

    @property
    def offset(self) -> dict[str, int]:
        """The number of bytes that were read from each file."""
        return {name: file.read for name, file in self.files.items()}

    def to_bytes(self) -> bytes:
        """Return the state as the content of a file.

        Raises `SavedStateError` if the content would be too large.
        """
        own = vars(self.state)
        request, row_filter, flows = own["_request"], own["_row_filter"], own["_flows"]
        names = set(flows.open_names())
        saved = SavedState(
            flows,
            own["_pairing"],
            # Only one frame of a stream names the software, so the frame's index is not needed.
            {name: (0, software) for name, software in _of(own["_software"], names).items()},
            _of(own["_instances"], names),
            own["_names"],
            dict.fromkeys(names, ""),
            0,
        )
        state, held_bytes, is_complete = saved.recorded(MOST_HELD_BYTES)
        if len(state.assemblers) > MOST_PAUSED:
            raise SavedStateError(f"the state has more than {MOST_PAUSED:,} open connections")
        if held_bytes > MOST_STATE_BYTES:
            raise SavedStateError(
                f"the state holds too many bytes of unfinished frames: {held_bytes:,}"
            )
        record = FollowedRecord(
            request.release,
            catalog().digest,
            row_filter.gives(FRAMES),
            row_filter.gives(RECORDS),
            is_complete,
            [_record_of(name, file) for name, file in self.files.items()],
            state,
            own["_forgotten"],
            own["_most_keys"],
            {name: record_of_evidence(one) for name, one in _of(own["_evidence"], names).items()},
            own["_proven"] & names,
        )
        return pack(record)

    @classmethod
    def from_bytes(
        cls, data: bytes, request: AnalysisRequest, row_filter: RowFilter
    ) -> SavedStream:
        """Return the state from the content of a file, for a stream of the same request.

        Raises `SavedStateError` if the state cannot be read, or was written with different
        options.
        """
        record = unpack(data, FollowedRecord)
        _check_options(record, request, row_filter)
        saved = SavedState.from_record(record.state, endless=True)
        said = (saved.software, saved.instances, record.evidence, record.proven)
        waits = {one.name for one in record.state.pending}
        if not waits.union(*said) <= set(saved.flows.open_names()):
            raise SavedStateError("the state is damaged: it lacks the name of a connection")
        state = FollowerState(request, row_filter)
        vars(state).update(
            _flows=saved.flows,
            _pairing=saved.pairing,
            _software={name: software for name, (_, software) in saved.software.items()},
            _instances=saved.instances,
            _names=saved.names,
            _forgotten=record.forgotten,
            _most_keys=record.most_keys,
            _evidence={name: evidence_of(one) for name, one in record.evidence.items()},
            _proven=record.proven,
        )
        files = {one.name: _file_of(one) for one in record.files}
        return cls(files, state, record.is_complete)


def _of(facts: Mapping[str, T], names: set[str]) -> dict[str, T]:
    """Return the facts about some connections."""
    return {name: fact for name, fact in facts.items() if name in names}


def _check_options(record: FollowedRecord, request: AnalysisRequest, row_filter: RowFilter) -> None:
    try:
        brokers = BrokerEnds.parse(record.state.ports, record.state.ends)
    except ValueError as error:
        raise SavedStateError(f"the state is damaged: {error}") from None
    same = {
        "different brokers or ports": brokers == request.brokers,
        "a different credentials setting": (
            record.state.show_credentials == request.show_credentials
        ),
        "another release of the captured brokers": record.release == request.release,
        "another catalog": record.catalog == catalog().digest,
        "other rows": (record.gives_frames, record.gives_records)
        == (row_filter.gives(FRAMES), row_filter.gives(RECORDS)),
    }
    for what, is_same in same.items():
        if not is_same:
            raise SavedStateError(f"the state was written with {what}")


def _record_of(name: str, file: FollowedFile) -> FileRecord:
    position = file.position
    if position is None:
        return FileRecord(name, file.read, file.begins_us, None)
    head = position.head
    section = pcap = None
    if isinstance(head, SectionHead):
        section = SectionRecord(
            _order(head.order), [_interface_record(one) for one in head.interfaces], head.last_us
        )
    elif isinstance(head, PcapHead):
        per_second: Literal[1_000_000, 1_000_000_000] = (
            1_000_000 if head.per_second == MILLION else 1_000_000_000
        )
        pcap = PcapRecord(_order(head.order), per_second, head.linktype)
    kept = PositionRecord(
        position.offset,
        position.ordinal,
        section,
        pcap,
        list(position.unreadable),
        list(position.skipped),
        position.is_end,
    )
    return FileRecord(name, file.read, file.begins_us, kept)


def _order(text: str) -> Order:
    return "<" if text == "<" else ">"


def _interface_record(interface: Interface) -> InterfaceRecord:
    digits = interface.per_second.to_bytes(_MOST_DIGITS, "big").lstrip(b"\0")
    return InterfaceRecord(interface.linktype, interface.snaplen, digits, interface.offset_seconds)


def _file_of(record: FileRecord) -> FollowedFile:
    kept = record.position
    if kept is None:
        return FollowedFile(record.read, record.begins_us, None)
    if kept.offset > record.read or (kept.section is not None and kept.pcap is not None):
        raise SavedStateError("the state is damaged: a position in a file is invalid")
    position = FilePosition(
        record.name,
        kept.offset,
        kept.ordinal,
        _head_of(kept),
        tuple(kept.unreadable),
        tuple(kept.skipped),
        kept.is_end,
    )
    return FollowedFile(record.read, record.begins_us, position)


def _head_of(record: PositionRecord) -> Head | None:
    section, pcap = record.section, record.pcap
    if pcap is not None:
        return PcapHead(pcap.order, pcap.per_second, pcap.linktype)
    if section is None:
        return None
    interfaces = [
        Interface(
            one.linktype, one.snaplen, int.from_bytes(one.per_second, "big"), one.offset_seconds
        )
        for one in section.interfaces
    ]
    if not all(one.per_second for one in interfaces):
        raise SavedStateError("the state is damaged: an interface of a file is invalid")
    return SectionHead(section.order, tuple(interfaces), section.last_us)


_ABANDONED: Final = timedelta(hours=1)
_NAME: Final = re.compile(r"stream-(\d{8})-([0-9a-f]{32})")


@dataclass(slots=True)
class StreamStates:
    """The saved states of one stream, each at an offset, in a directory without other files.

    Numbers in the file names show which file was written last. Every failure of the directory
    raises a `StorageError`.
    """

    directory: OutputDirectory
    _names: list[str] | None = field(default=None, init=False)

    def read(self, offset: FileOffsets | None) -> bytes | None:
        """Return the state at an offset (None: the last state), or None if no state exists."""
        digest = None if offset is None else _digest(offset)
        for name in reversed(self._listed()):
            if digest in {None, name.rpartition("-")[2]}:
                return self.directory.read(name)
        return None

    def keep(self, start: FileOffsets, end: FileOffsets, data: bytes) -> None:
        """Save the state at the ``end`` of a batch.

        States from before the batch's ``start`` are removed.
        """
        names = self._listed()
        number = 1 + max((int(name.split("-")[1]) for name in names), default=0)
        name = f"stream-{number:08d}-{_digest(end)}"
        self.directory.write(name, data)
        # The last state of each offset is kept.
        kept = {one.rpartition("-")[2]: one for one in names}.get(_digest(start))
        self.directory.remove(one for one in names if one != kept)
        self._names = [name] if kept is None else [kept, name]

    def _listed(self) -> list[str]:
        if self._names is None:
            if self.directory.path is not None:
                # These files are leftovers of a killed stream.
                self.directory.sweep(datetime.now(UTC) - _ABANDONED)
            entries = self.directory.entries("stream-")
            self._names = sorted(entry.name for entry in entries if _NAME.fullmatch(entry.name))
        return self._names


def _digest(offset: FileOffsets) -> str:
    return hashlib.sha256(json.dumps(sorted(offset.items())).encode()).hexdigest()[:32]
