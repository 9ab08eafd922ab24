"""The open connections at the end of an analysis, in a file that the next analysis reads.

```
magic · format · layout (8 bytes) · digest (16) · size (8)     the head
zstd of msgpack                                                 a `StateRecord`, lists in lists
```
The layout of the file is identified by a digest of the names and types of all fields. A release
with different fields does not read the file, and the next analysis starts without it. The digest at
the start of the file covers the bytes after it. A file is decoded according to the types of its
fields, and then checked for everything that the code relies on. The content of the file is treated
as data, and is never run as code. The state of a stream of captures is stored in a file of the same
kind (`flexwire.survey.saved_stream`).

Only the owner can read the file. The file contains the first bytes of unfinished frames, which
appear in tables when the frames are complete. Bytes that may be credentials are left out, unless
the tables show credentials too. A frame without such bytes counts as a frame that was not captured
completely.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeVar, get_args, get_type_hints

import msgspec
from cramjam import DecompressionError, zstd

from flexwire.capture.pairing.saved import PendingRecord, pairing_of, records_of
from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.capture.reassembly.flows import Flows
from flexwire.capture.reassembly.idling import MOST_PAUSED
from flexwire.capture.reassembly.saved import (
    AssemblerRecord,
    Count,
    Number,
    SavedRecord,
    assembler_of,
    record_of,
)
from flexwire.errors import FlexwireError
from flexwire.survey.client_instances import GivenInstance
from flexwire.survey.speculation import key_of
from flexwire.survey.withholding import held_bytes, is_complete, withhold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.capture.pairing.pairing import Pairing

MOST_STATE_BYTES: Final = 1 << 30
"""The largest size of a state in memory, in bytes."""
_MAGIC: Final = b"flexwire state\n"
_FORMAT: Final = 1
_HEAD: Final = struct.Struct(f">{len(_MAGIC)}sB8s16sQ")
_LEVEL: Final = 1

T = TypeVar("T", bound=SavedRecord)


class SavedStateError(FlexwireError):
    """A saved state cannot be used."""


class InstanceRecord(SavedRecord):
    """A client instance id, and the frame that contained it."""

    time_us: Number
    is_response: bool
    frame_index: Count
    text: str


class StateRecord(SavedRecord):
    """The content of the file."""

    ports: list[int]
    ends: list[str]
    show_credentials: bool
    end_us: Number
    assemblers: Annotated[list[AssemblerRecord], msgspec.Meta(max_length=MOST_PAUSED)]
    pending: list[PendingRecord]
    software: dict[str, tuple[Count, tuple[str | None, str | None]]]
    instances: dict[str, InstanceRecord]
    names: dict[str, str]
    began: dict[str, str]


class RecordedState(NamedTuple):
    """A state as a record, and the number of bytes of unfinished frames.

    The state ``is_complete`` if no bytes were left out on which a later row could depend.
    """

    record: StateRecord
    held_bytes: int
    is_complete: bool


class PackedState(NamedTuple):
    """The content of a file, and the number of bytes of unfinished frames."""

    data: bytes
    held_bytes: int


@dataclass(slots=True)
class SavedState:
    """The state of the open connections at the end of an analysis.

    ``software`` and ``instances`` belong to the clients on open connections. ``names`` contains the
    names of topics by their ids. ``began`` contains the analysis in which each open connection
    began. Only these connections of ``pairing`` are written. ``end_us`` is the time at which the
    last segment was captured.
    """

    flows: Flows
    pairing: Pairing
    software: dict[str, tuple[int, tuple[str | None, str | None]]]
    instances: dict[str, GivenInstance]
    names: dict[str, str]
    began: dict[str, str]
    end_us: int

    def only(self, has: Callable[[str], bool]) -> SavedState:
        """Return the state of some keys' connections, and the names of all topics."""

        def is_wanted(name: str) -> bool:
            return has(key_of(name))

        return replace(
            self,
            flows=self.flows.only(filter(has, self.flows.assemblers())),
            pairing=self.pairing.only(is_wanted),
            software={name: one for name, one in self.software.items() if is_wanted(name)},
            instances={name: one for name, one in self.instances.items() if is_wanted(name)},
            began={name: run for name, run in self.began.items() if is_wanted(name)},
        )

    def count_held(self) -> int:
        """Return how many bytes of unfinished frames the state contains."""
        return held_bytes(self._assemblers())

    def to_bytes(self) -> bytes:
        """Return the state as the content of a file."""
        return self.packed().data

    def _assemblers(self) -> list[AssemblerRecord]:
        return [
            record_of(assembler, self.flows.files.get(key, ""))
            for key, assembler in self.flows.assemblers().items()
        ]

    def packed(self) -> PackedState:
        """Return the content of a file, and the number of bytes of unfinished frames in it."""
        recorded = self.recorded()
        return PackedState(pack(recorded.record), recorded.held_bytes)

    def recorded(self, most_held: int | None = None) -> RecordedState:
        """Return the state as a record, with at most ``most_held`` bytes of unfinished frames.

        If ``most_held`` is None, the limit of `withhold` is used.
        """
        brokers, shows = self.flows.brokers, self.pairing.show_credentials
        assemblers = self._assemblers()
        pending = records_of(self.pairing, self.began.keys())
        kept = withhold(assemblers, pending, shows=shows, most=most_held)
        record = StateRecord(
            sorted(brokers.ports),
            sorted(brokers.ends),
            shows,
            self.end_us,
            kept,
            pending,
            self.software,
            {name: InstanceRecord(*given) for name, given in self.instances.items()},
            self.names,
            self.began,
        )
        return RecordedState(record, held_bytes(assemblers), is_complete(assemblers, kept))

    @classmethod
    def from_bytes(cls, data: bytes) -> SavedState:
        """Return the state from the content of a file.

        Raises `SavedStateError` if the content cannot be read.
        """
        return cls.from_record(unpack(data, StateRecord))

    @classmethod
    def from_record(cls, record: StateRecord, *, endless: bool = False) -> SavedState:
        """Return the state of a record. ``endless`` is the argument of `Flows`.

        Raises `SavedStateError` if the record is not valid.
        """
        try:
            brokers = BrokerEnds.parse(record.ports, record.ends)
            flows = Flows(brokers=brokers, endless=endless)
            for one in record.assemblers:
                assembler = assembler_of(one, flows.limit, brokers, endless=endless)
                flows.adopt(assembler.key, assembler, ())
                flows.files[assembler.key] = one.file
            pairing = pairing_of(record.pending, show_credentials=record.show_credentials)
        except (ValueError, FlexwireError) as error:
            raise SavedStateError(f"the state is damaged: {error}") from None
        instances = {
            name: GivenInstance(*msgspec.structs.astuple(given))
            for name, given in record.instances.items()
        }
        return cls(
            flows, pairing, record.software, instances, record.names, record.began, record.end_us
        )


def pack(record: SavedRecord) -> bytes:
    """Return a record as the content of a file.

    Raises `SavedStateError` if the content would be too large, or if the name of a file in it is
    not text.
    """
    try:
        data = msgspec.msgpack.encode(record)
    except UnicodeEncodeError as error:
        raise SavedStateError(f"a file name cannot be encoded as UTF-8: {error.object!r}") from None
    if len(data) > MOST_STATE_BYTES:
        raise SavedStateError(
            f"the state has {len(data):,} bytes, but at most {MOST_STATE_BYTES:,} can be saved"
        )
    packed = bytes(zstd.compress(data, _LEVEL))
    digest = hashlib.sha256(packed).digest()[:16]
    return _HEAD.pack(_MAGIC, _FORMAT, layout(type(record)), digest, len(data)) + packed


@cache
def layout(kind: type[SavedRecord] = StateRecord) -> bytes:
    """Return a digest of the names and types of all fields of a record, including nested fields."""
    kinds = sorted({kind, *_within(kind)}, key=lambda kind: kind.__name__)
    told = [(kind.__name__, [*kind.__annotations__.items()]) for kind in kinds]
    return hashlib.sha256(repr(told).encode()).digest()[:8]


def _within(kind: object) -> Iterator[type[SavedRecord]]:
    """Yield every kind of record that a type contains."""
    parts = get_args(kind)
    if isinstance(kind, type) and issubclass(kind, SavedRecord):
        yield kind
        parts = tuple(get_type_hints(kind).values())
    for part in parts:
        yield from _within(part)


def unpack(data: bytes, kind: type[T]) -> T:
    """Return the record in the content of a file. Raises `SavedStateError` if this fails."""
    if len(data) < _HEAD.size:
        raise SavedStateError("the state is cut off")
    magic, number, fields, digest, size = _HEAD.unpack_from(data)
    packed = data[_HEAD.size :]
    if magic != _MAGIC:
        raise SavedStateError("the file is not a saved state of flexwire")
    if number != _FORMAT or fields != layout(kind):
        raise SavedStateError("another release of flexwire wrote the state")
    if digest != hashlib.sha256(packed).digest()[:16]:
        raise SavedStateError("the state is damaged")
    if size > MOST_STATE_BYTES:
        raise SavedStateError(
            f"the state has {size:,} bytes, but at most {MOST_STATE_BYTES:,} can be read"
        )
    whole = bytearray(size)
    try:
        if zstd.decompress_into(packed, whole) != size:
            raise SavedStateError("the state is damaged")
        return msgspec.msgpack.decode(whole, type=kind)
    except (DecompressionError, msgspec.DecodeError, RecursionError) as error:
        raise SavedStateError(f"the state is damaged: {error}") from None
