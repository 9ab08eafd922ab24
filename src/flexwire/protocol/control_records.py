"""Control records: what the broker or the quorum writes between the records of clients.

The key is int16 version and int16 type. The value of an ABORT or COMMIT is an int16 version and the
marker; the others' values are messages that begin with a version of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from flexwire.codec import Message, message
from flexwire.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Mapping

_INT16_SIZE = 2
_KEY, _KEY_VERSION = "ControlRecordTypeSchema", 0
_MARKER, _MARKER_VERSION = "EndTxnMarker", 0
# The types are an enumeration of Kafka's Java; no spec has them.
CONTROL_TYPES: Mapping[int, tuple[str, str]] = {
    0: ("ABORT", _MARKER),
    1: ("COMMIT", _MARKER),
    2: ("LEADER_CHANGE", "LeaderChangeMessage"),
    3: ("SNAPSHOT_HEADER", "SnapshotHeaderRecord"),
    4: ("SNAPSHOT_FOOTER", "SnapshotFooterRecord"),
    5: ("KRAFT_VERSION", "KRaftVersionRecord"),
    6: ("KRAFT_VOTERS", "VotersRecord"),
}
"""By type: its name, and the message of the value."""


class ControlRecord(NamedTuple):
    """What a control record says; no name and message where the type is not known."""

    type: int
    name: str | None
    version: int
    message: Message | None

    def to_json(self) -> dict[str, Any]:
        """Give the type by number and name, and the message."""
        made: dict[str, Any] = {"type": self.type, "name": self.name}
        if self.message is not None:
            made |= {"message": type(self.message).entry.name, "version": self.version}
            made["data"] = self.message.to_json(self.version)
        return made


def decode_control_record(
    key: bytes | None, value: bytes | None, release: str | None = None
) -> ControlRecord:
    """Decode the key and value of a control record, by the layout of a ``release`` or the newest.

    As in Kafka, a key or marker of a version newer than what is known is read as the known one,
    and a type that is not known is no error. Raises `DecodeError`, and `UnknownMessageError` for a
    version of another value that no bundled release has, or not the one asked for.

    >>> decode_control_record(bytes.fromhex("00000001"), bytes.fromhex("000000000007")).to_json()
    {'type': 1, 'name': 'COMMIT', 'message': 'EndTxnMarker', 'version': 0, \
'data': {'coordinatorEpoch': 7}}
    """
    control_type: int = _read_versioned(_KEY, _KEY_VERSION, key).type
    name, value_name = CONTROL_TYPES.get(control_type, (None, None))
    if value_name is None:
        return ControlRecord(control_type, None, 0, None)
    if value_name == _MARKER:
        marker = _read_versioned(_MARKER, _MARKER_VERSION, value)
        return ControlRecord(control_type, name, _MARKER_VERSION, marker)
    version = _version(value_name, value)
    decoded = message(value_name, release).decode(value or b"", version)
    return ControlRecord(control_type, name, version, decoded)


def _read_versioned(name: str, newest: int, data: bytes | None) -> Any:
    """Read a message that follows the version of its writer."""
    version = _version(name, data)
    decoded, end = message(name).decode_prefix(data or b"", newest, _INT16_SIZE)
    if data is not None and end != len(data) and version <= newest:
        reason = f"the message ends here but {len(data) - end} bytes follow"
        raise DecodeError(reason, offset=end, message=name, version=newest)
    return decoded


def _version(name: str, data: bytes | None) -> int:
    if data is None or len(data) < _INT16_SIZE:
        found = "null" if data is None else f"{len(data)} bytes"
        raise DecodeError(f"{found}, which is too short for a version", message=name)
    version = int.from_bytes(data[:_INT16_SIZE], "big", signed=True)
    if version < 0:
        raise DecodeError(f"version {version}", offset=0, message=name)
    return version
