"""Make a cluster's metadata log, record by record, and its snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.codec import message
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.protocol.record_types import framed_messages
from flexwire.records import Record, encode_batch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TIME = 1_700_000_000_000
DIRECTORY = "__cluster_metadata-0"
TYPES = {
    name: number
    for number, names in framed_messages(InternalTopic.METADATA.module).items()
    for name in names
}
# Types of control records.
LEADER_CHANGE, HEADER, FOOTER, VERSION, VOTERS = 2, 3, 4, 5, 6
# The id of a log directory.
PLACE = "AAAAAAAAAAAAAAAAAAAAOA"


def value(name: str, version: int = 0, /, **fields: Any) -> bytes:
    """Return the value of a record: its message in Kafka's JSON form."""
    body = message(name).from_json(fields, version).encode(version)
    return bytes([1, TYPES[name], version]) + body


def control(kind: int, name: str, /, **fields: Any) -> tuple[bytes, bytes]:
    body = message(name).from_json({"version": 0, **fields}, 0).encode(0)
    return b"\x00\x00" + kind.to_bytes(2, "big"), bytes(body)


def batch(
    offset: int, values: list[Any], *, time: int = TIME, epoch: int = 1, is_control: bool = False
) -> bytes:
    """Return a batch of values, or of keys and values."""
    pairs = [one if isinstance(one, tuple) else (None, one) for one in values]
    records = [Record(offset + at, time, key, data, []) for at, (key, data) in enumerate(pairs)]
    return bytes(encode_batch(records, partition_leader_epoch=epoch, is_control=is_control))


def elected(offset: int, *voters: int, time: int = TIME, epoch: int = 1) -> bytes:
    """Return the batch that a new leader writes first."""
    ids = [{"voterId": one} for one in voters]
    change = control(
        LEADER_CHANGE, "LeaderChangeMessage", leaderId=voters[0], voters=ids, grantingVoters=ids
    )
    return batch(offset, [change], time=time, epoch=epoch, is_control=True)


def quorum(version: int | None, *voters: int) -> list[tuple[bytes, bytes]]:
    """Return the record for the quorum's version, and the records for its voters, if any."""
    said = []
    if version is not None:
        said.append(control(VERSION, "KRaftVersionRecord", kRaftVersion=version))
    if voters:
        each = [
            {
                "voterId": one,
                "voterDirectoryId": PLACE,
                "endpoints": [{"name": "CONTROLLER", "host": f"c{one}", "port": 9000 + one}],
                "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
            }
            for one in voters
        ]
        said.append(control(VOTERS, "VotersRecord", voters=each))
    return said


def log(*parts: list[Any], time: int = TIME, voters: tuple[int, ...] = (1,)) -> bytes:
    """Return a log from offset 0: a leader election, then a batch per part, a second apart."""
    made, offset = elected(0, *voters, time=time), 1
    for number, values in enumerate(parts, 1):
        made += batch(offset, values, time=time + 1000 * number)
        offset += len(values)
    return made


def snapshot(
    values: list[bytes], *, time: int = TIME, controls: Sequence[tuple[bytes, bytes]] = ()
) -> bytes:
    """Return the content of a snapshot, whose offsets begin at 0. `quorum` makes ``controls``."""
    header = control(HEADER, "SnapshotHeaderRecord", lastContainedLogTimestamp=time)
    made, first = batch(0, [header, *controls], is_control=True), 1 + len(controls)
    if values:
        made += batch(first, values)
    footer = control(FOOTER, "SnapshotFooterRecord")
    return made + batch(first + len(values), [footer], is_control=True)


def write(root: Path, files: dict[str, bytes]) -> Path:
    """Write files: a base offset ("0") names a segment, an offset and epoch ("5-1") a snapshot."""
    there = root / DIRECTORY
    there.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        offset, _, epoch = name.partition("-")
        kind = f"-{int(epoch):010}.checkpoint" if epoch else ".log"
        (there / f"{int(offset):020}{kind}").write_bytes(data)
    return there
