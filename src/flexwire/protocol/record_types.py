"""The messages in the records of internal topics, including control records.

If no release is given, the newest release that contains the type, version or layout is used.

The key of a control record is an int16 version and an int16 type. The value of an ABORT or COMMIT
is an int16 version and the marker. Other values are messages that begin with their own version.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from flexwire.codec import Message, message
from flexwire.errors import DecodeError
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.schema.spec import MessageType
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from flexwire.schema.catalog import CatalogEntry


_KEY, _VALUE = "Key", "Value"


@per_catalog
@cache
def record_keys(module: str, release: str | None = None) -> dict[int, tuple[str, int]]:
    """Return the key's message and its version, by record type.

    >>> record_keys("share-coordinator")
    {0: ('ShareSnapshotKey', 0), 1: ('ShareUpdateKey', 0)}
    """
    keys: dict[int, tuple[str, int]] = {}
    for candidate in _newest_first(release):
        for record_type, name, version in _keys_in(module, candidate):
            keys.setdefault(record_type, (name, version))
    return keys


@per_catalog
@cache
def record_values(module: str, release: str | None = None) -> dict[int, tuple[str, ...]]:
    """Return the value's messages by record type, with the newest release's message first."""
    messages: dict[int, tuple[str, ...]] = {}
    for candidate in _newest_first(release):
        for record_type, key, _ in _keys_in(module, candidate):
            _add(messages, record_type, f"{record_name(key)}{_VALUE}")
    return messages


@per_catalog
@cache
def framed_messages(module: str, release: str | None = None) -> dict[int, tuple[str, ...]]:
    """Return the messages of framed values by API key, with the newest release's message first."""
    messages: dict[int, tuple[str, ...]] = {}
    for candidate in _newest_first(release):
        for entry in _entries(module, MessageType.METADATA):
            if entry.api_key is not None and candidate in entry.releases:
                _add(messages, entry.api_key, entry.name)
    return messages


def record_name(key: str) -> str:
    """Return a record's name, given its key's message: the part that key and value names share.

    >>> record_name("OffsetCommitKey")
    'OffsetCommit'
    """
    return key.removesuffix(_KEY)


# The cache is limited, because versions come from the bytes.
@per_catalog
@lru_cache(maxsize=4096)
def with_version(names: tuple[str, ...], version: int, release: str | None = None) -> str:
    """Return the first of these messages that has the version, or else the first message."""
    for name in names:
        entry = catalog().entry(name)
        if release is None and version in entry.versions:
            return name
        if release is not None and version in entry.releases.get(release, Versions.NONE):
            return name
    return names[0]


def other_layouts(name: str, version: int) -> Iterator[str]:
    """Yield the newest release of every earlier layout of a version."""
    entry = catalog().entry(name)
    layouts = [entry.spec(version)]
    for release, valid in reversed(entry.releases.items()):
        if version in valid and entry.spec(version, release) not in layouts:
            layouts.append(entry.spec(version, release))
            yield release


def _keys_in(module: str, release: str) -> list[tuple[int, str, int]]:
    """Return every record type of a release, with the message and version of its key.

    Up to Kafka 4.0, the version of a key is its type, so no two keys have the same version. Since
    4.1, the type is the API key of the key's message, and all keys have version 0.
    """
    keys = [
        (entry, version)
        for kind in (MessageType.DATA, MessageType.COORDINATOR_KEY)
        for entry in _entries(module, kind)
        if entry.name.endswith(_KEY)
        for version in entry.releases.get(release, ())
    ]
    versions = [version for _, version in keys]
    are_types = len(set(versions)) == len(versions)
    return [
        (version if are_types or entry.api_key is None else entry.api_key, entry.name, version)
        for entry, version in keys
    ]


def _add(messages: dict[int, tuple[str, ...]], number: int, name: str) -> None:
    names = messages.get(number, ())
    if name not in names:
        messages[number] = (*names, name)


def _newest_first(release: str | None) -> Iterable[str]:
    return reversed(catalog().releases) if release is None else (release,)


def _entries(module: str, kind: MessageType) -> Iterator[CatalogEntry]:
    for entry in map(catalog().entry, catalog().names()):
        if entry.module == module and entry.type is kind:
            yield entry


_INT16_SIZE = 2
_CONTROL_KEY, _KEY_VERSION = "ControlRecordTypeSchema", 0
_MARKER, _MARKER_VERSION = "EndTxnMarker", 0
# The types come from an enumeration in Kafka's Java code; no spec contains them.
CONTROL_TYPES: Mapping[int, tuple[str, str]] = {
    0: ("ABORT", _MARKER),
    1: ("COMMIT", _MARKER),
    2: ("LEADER_CHANGE", "LeaderChangeMessage"),
    3: ("SNAPSHOT_HEADER", "SnapshotHeaderRecord"),
    4: ("SNAPSHOT_FOOTER", "SnapshotFooterRecord"),
    5: ("KRAFT_VERSION", "KRaftVersionRecord"),
    6: ("KRAFT_VOTERS", "VotersRecord"),
}
"""The name of each type, and the message of its value."""


class ControlRecord(NamedTuple):
    """The content of a control record. Name and message are None if the type is unknown."""

    type: int
    name: str | None
    version: int
    message: Message | None

    def to_json(self) -> dict[str, Any]:
        """Return the type as a number and a name, and the message."""
        form: dict[str, Any] = {"type": self.type, "name": self.name}
        if self.message is not None:
            form |= {"message": type(self.message).entry.name, "version": self.version}
            form["data"] = self.message.to_json(self.version)
        return form


def decode_control_record(
    key: bytes | None, value: bytes | None, release: str | None = None
) -> ControlRecord:
    """Decode a control record's key and value in the layout of ``release`` or the newest layout.

    As in Kafka, a key or marker in an unknown newer version is read as the known version, and an
    unknown type is not an error. Raises `DecodeError`. Raises `UnknownMessageError` if another
    value is in a version that is in no bundled release or not in ``release``.

    >>> decode_control_record(bytes.fromhex("00000001"), bytes.fromhex("000000000007")).to_json()
    {'type': 1, 'name': 'COMMIT', 'message': 'EndTxnMarker', 'version': 0, \
'data': {'coordinatorEpoch': 7}}
    """
    control_type: int = _read_versioned(_CONTROL_KEY, _KEY_VERSION, key).type
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
    """Read a message that follows its version."""
    version = _version(name, data)
    decoded, end = message(name).decode_prefix(data or b"", newest, _INT16_SIZE)
    if data is not None and end != len(data) and version <= newest:
        reason = f"the message ends here but {len(data) - end} bytes follow"
        raise DecodeError(reason, offset=end, message=name, version=newest)
    return decoded


def _version(name: str, data: bytes | None) -> int:
    if data is None or len(data) < _INT16_SIZE:
        size = "null" if data is None else f"{len(data)} bytes"
        raise DecodeError(f"expected a 2-byte version, got {size}", message=name)
    version = int.from_bytes(data[:_INT16_SIZE], "big", signed=True)
    if version < 0:
        raise DecodeError(f"version {version}", offset=0, message=name)
    return version
