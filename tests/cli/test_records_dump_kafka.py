"""`flexwire records dump` shows everything that Kafka's own classes and Kafka's tool show."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.cli.records_dump_options import DumpOptions
from flexwire.cli.records_dump_rows import rows
from tests.capture.log_vectors import vectors, write_all
from tests.each import each

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]

LOGS = [path for path in vectors() if path.endswith((".log", ".checkpoint"))]
INDEXES = [path for path in vectors() if path.endswith("index")]
SNAPSHOTS = [path for path in vectors() if path.endswith(".snapshot")]
# In these logs, Kafka's tool stops, or reads an unknown magic as 2 (see test_records_dump_damage).
UNREADABLE = {"magic-0", "length-0", "zeros-0", "index-position-0", "cut-header-0"}
WHOLE = [path for path in vectors() if path.split("/", maxsplit=1)[0] not in UNREADABLE]

_BATCH_FIELDS = (
    "position",
    "size",
    "magic",
    "baseOffset",
    "lastOffset",
    "count",
    "partitionLeaderEpoch",
    "producerId",
    "producerEpoch",
    "baseSequence",
    "lastSequence",
    "isTransactional",
    "isControl",
    "deleteHorizonMs",
    "timestampType",
    "maxTimestamp",
    "compression",
    "crc",
    "isValid",
)
# Facts about a message set that are known only after its records are read.
_UNTOLD = ("baseOffset", "count")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("logs")
    write_all(made)
    return made


def dumped(root: Path, path: str, **wanted: Any) -> list[Row]:
    return list(rows(root / path, DumpOptions(show_credentials=True, **wanted)))


def of(rows: list[Row], kind: str) -> list[Row]:
    return [row for row in rows if row["type"] == kind]


def in_base64(value: Any) -> str | None:
    if isinstance(value, str):
        return base64.b64encode(value.encode()).decode()
    assert value is None or set(value) == {"base64"}
    return None if value is None else value["base64"]


@each("path", [path for path in LOGS if path in WHOLE])
def test_every_field_of_every_batch_is_what_kafka_reads(root: Path, path: str) -> None:
    for row, expected in zip(
        of(dumped(root, path), "batch"), vectors()[path]["batches"], strict=True
    ):
        for name, value in zip(_BATCH_FIELDS, expected, strict=True):
            if row["magic"] == 2 or name not in _UNTOLD:
                assert row[name] == value, name


@each("path", [path for path in LOGS if path in WHOLE])
def test_every_byte_of_every_record_is_what_kafka_reads(root: Path, path: str) -> None:
    found = of(dumped(root, path, deep=True), "record")
    expected = vectors()[path]["records"]
    assert len(found) == len(expected)
    for row, record in zip(found, expected, strict=True):
        assert {name: row[name] for name in ("offset", "timestamp", "sequence")} == {
            name: record[name] for name in ("offset", "timestamp", "sequence")
        }
        headers = [[header["key"], in_base64(header["value"])] for header in row["headers"]]
        assert headers == record["headers"]
        for name in ("key", "value"):
            content = record[name]
            assert row[f"{name}Size"] == (-1 if content is None else len(in_bytes(content)))
            # The decoded values are compared with the tool's output below.
            if name in row and not is_message(row[name]):
                assert in_base64(row[name]) == content


def in_bytes(text: str) -> bytes:
    return base64.b64decode(text)


def is_message(value: Any) -> bool:
    return isinstance(value, dict) and "message" in value


# These are the lines of Kafka's tool, reconstructed from the rows.


@each("path", [path for path in LOGS if path in WHOLE])
def test_a_log_gives_the_lines_of_kafkas_tool(root: Path, path: str) -> None:
    found = dumped(root, path, deep=True)
    tool = later_tool if path.startswith("4.4") else tool_lines
    lines = [line for row in found for line in tool(row, found)]
    size = of(found, "file")[0]["size"]
    tail = [row for row in of(found, "finding") if row["position"] + row["size"] == size]
    for row in tail:
        if row["file"].endswith(".log"):
            name = row["file"].rpartition("/")[2]
            lines.append(f"Found {row['size']} invalid bytes at the end of {name}")
    said = [line for line in vectors()[path]["said"] if not line.startswith(BEGINNINGS)]
    assert lines == [in_order(line) for line in said]


_TOOL_JSON = re.compile(r"""(?<=: )\{"(?:type|version)".*?\}(?= payload: |$)""")
BEGINNINGS = ("Log starting offset", "Snapshot end offset", "KRaft bootstrap snapshot")


def in_order(line: str) -> str:
    """Rewrite the JSON in a line of Kafka's tool, so that spaces and order do not matter."""
    # For the state of share groups, the tool of 4.0 prints the version as the type.
    line = re.sub(r'( payload: \{)"type"(:.*"snapshotEpoch")', r'\1"version"\2', line)
    # The CRC of every message within a wrapper is checked but not shown.
    line = re.sub(r"^(\|.*) isValid: true crc: \d+\}", r"\1", line)
    return _TOOL_JSON.sub(lambda match: plain(json.loads(match[0])), line)


def plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def tool_lines(row: Row, found: list[Row]) -> list[str]:
    if row["type"] == "batch":
        return [batch_line(row)]
    if row["type"] != "record":
        return []
    batch = next(one for one in of(found, "batch") if one["lastOffset"] >= row["offset"])
    return [record_line(row, batch)]


def later_tool(row: Row, found: list[Row]) -> list[str]:
    """Return what the tool of 4.3 prints: transactions also as JSON, with a new
    leader's message.
    """
    control = row.get("control", {})
    if control.get("name") == "LEADER_CHANGE":
        [line] = tool_lines(row, found)
        start = line.partition(" controlType: ")[0]
        return [f"{start} LeaderChange: {plain(control['data'])}"]
    named = {
        name: {**row[name], "message": row[name]["message"].replace("TransactionLog", "")}
        for name in ("key", "value")
        if is_message(row.get(name))
    }
    return tool_lines({**row, **named}, found)


def batch_line(row: Row) -> str:
    horizon = row["deleteHorizonMs"]
    horizon = "OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]"
    names = (
        *("baseOffset", "lastOffset", "count", "baseSequence", "lastSequence", "producerId"),
        *("producerEpoch", "partitionLeaderEpoch", "isTransactional", "isControl"),
    )
    told = " ".join(f"{name}: {text(row[name])}" for name in names)
    start = (
        f"{told} deleteHorizonMs: {horizon}"
        if row["magic"] == 2
        else f"offset: {row['lastOffset']}"
    )
    return (
        f"{start} position: {row['position']} {row['timestampType']}: {row['maxTimestamp']} "
        f"size: {row['size']} magic: {row['magic']} compresscodec: {row['compression']} "
        f"crc: {row['crc']} isvalid: {text(row['isValid'])}"
    )


def text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def record_line(row: Row, batch: Row) -> str:
    line = (
        f"| offset: {row['offset']} {batch['timestampType']}: {row['timestamp']} "
        f"keySize: {row['keySize']} valueSize: {row['valueSize']}"
    )
    if batch["magic"] == 2:
        keys = ",".join(header["key"] for header in row["headers"])
        line += f" sequence: {row['sequence']} headerKeys: [{keys}]"
    if "control" in row:
        return line + control_text(row["control"])
    key, value = told(row["key"]), told(row["value"])
    if is_message(row["key"]):
        value = "<DELETE>" if value is None else value
    line += "" if key is None else f" key: {key}"
    return line if value is None else f"{line} payload: {value}"


def control_text(control: Row) -> str:
    names = {3: "SnapshotHeader", 4: "SnapshotFooter", 5: "KRaftVersion", 6: "KRaftVoters"}
    if control["type"] < 2:
        epoch = control["data"]["coordinatorEpoch"]
        return f" endTxnMarker: {control['name']} coordinatorEpoch: {epoch}"
    if control["type"] == 2:
        return f" controlType: {control['name']}({control['type']})"
    return f" {names[control['type']]} {json.dumps(control['data'], separators=(',', ':'))}"


def told(value: Any) -> str | None:
    """Return a key or value as the tool prints it."""
    if not is_message(value):
        return (
            value
            if value is None or isinstance(value, str)
            else in_bytes(value["base64"]).decode(errors="replace")
        )
    name, data = value["message"], value["data"]
    if name.startswith("TransactionLog"):
        return transaction_text(name, value)
    if name.startswith("Remote"):
        return remote_text(name, value)
    if name.endswith("Record"):
        kind = re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()
        return plain({"type": kind, "version": value["version"], "data": data})
    if name.endswith("Key"):
        return plain({"type": str(value["type"]), "data": data})
    for member in data.get("members", ()):
        for field in ("subscription", "assignment"):
            # The tool does not print which version it read here.
            member[field] = member[field]["data"] if is_message(member[field]) else member[field]
    return plain({"version": str(value["version"]), "data": data})


def transaction_text(name: str, value: Row) -> str:
    data = value["data"]
    if name == "TransactionLogKey":
        return f"transaction_metadata::transactionalId={data['transactionalId']}"
    partitions = [
        f"{one['topic']}-{partition}"
        for one in data["transactionPartitions"] or ()
        for partition in one["partitionIds"]
    ]
    return (
        f"producerId:{data['producerId']},producerEpoch:{data['producerEpoch']},"
        f"state={value['state']},partitions=[{','.join(partitions)}],"
        f"txnLastUpdateTimestamp={data['transactionLastUpdateTimestampMs']},"
        f"txnTimeoutMs={data['transactionTimeoutMs']}"
    )


def remote_text(name: str, value: Row) -> str:
    data, state = value["data"], value["state"]
    end = f"eventTimestampMs={data['eventTimestampMs']}, brokerId={data['brokerId']}}}"
    if name == "RemotePartitionDeleteMetadataRecord":
        return (
            f"RemotePartitionDeleteMetadata{{topicPartition={partition_text(data)}, "
            f"state={state}, {end}"
        )
    segment = data["remoteLogSegmentId"]
    start = (
        f"remoteLogSegmentId=RemoteLogSegmentId{{topicIdPartition={partition_text(segment)}, "
        f"id={segment['id']}}}, "
    )
    if name == "RemoteLogSegmentMetadataUpdateRecord":
        assert data["customMetadata"] is None
        return (
            f"RemoteLogSegmentMetadataUpdate{{{start}customMetadata=Optional.empty, "
            f"state={state}, {end}"
        )
    names = ("startOffset", "endOffset", "brokerId", "maxTimestampMs", "eventTimestampMs")
    fields = "".join(f"{one}={data[one]}, " for one in names)
    epochs = ", ".join(
        f"{one['leaderEpoch']}={one['offset']}" for one in data["segmentLeaderEpochs"]
    )
    custom = f"Optional[CustomMetadata{{{len(in_bytes(data['customMetadata']))} bytes}}]"
    return (
        f"RemoteLogSegmentMetadata{{{start}{fields}segmentLeaderEpochs={{{epochs}}}, "
        f"segmentSizeInBytes={data['segmentSizeInBytes']}, customMetadata={custom}, state={state}}}"
    )


def partition_text(data: Row) -> str:
    one = data["topicIdPartition"]
    return f"{one['id']}:{one['name']}-{one['partition']}"


# Indexes and producer snapshots.


@each("path", [path for path in INDEXES if path in WHOLE])
def test_an_index_gives_the_lines_of_kafkas_tool(root: Path, path: str) -> None:
    found = dumped(root, path)
    lines = [
        " ".join(f"{name}: {row[name]}" for name in row if name not in {"type", "file"})
        for row in found
        if row["type"] not in {"file", "finding"}
    ]
    said = [line for line in vectors()[path]["said"] if "is empty" not in line]
    assert lines == said


@each("path", [path for path in INDEXES if path in WHOLE])
def test_there_is_a_finding_where_kafkas_tool_complains(root: Path, path: str) -> None:
    # The tool does not report an incomplete entry.
    expected = vectors()[path]["complained"] or path == "index-cut-0/00000000000000000000.index"
    assert bool(of(dumped(root, path), "finding")) is bool(expected)


@pytest.mark.parametrize("path", SNAPSHOTS)
def test_a_snapshot_of_producers_gives_the_lines_of_kafkas_tool(root: Path, path: str) -> None:
    lines = []
    for row in dumped(root, path)[1:]:
        assert row["type"] == "producer"
        first = row["currentTxnFirstOffset"]
        batch = (
            f" firstSequence: {row['lastSequence'] - row['offsetDelta']} "
            f"lastSequence: {row['lastSequence']} lastOffset: {row['lastOffset']} "
            f"offsetDelta: {row['offsetDelta']} timestamp: {row['timestamp']}"
        )
        lines.append(
            f"producerId: {row['producerId']} producerEpoch: {row['epoch']} "
            f"coordinatorEpoch: {row['coordinatorEpoch']} currentTxnFirstOffset: "
            f"{'OptionalLong.empty' if first < 0 else f'OptionalLong[{first}]'} "
            f"lastTimestamp: {row['timestamp']}{batch if row['lastOffset'] >= 0 else ''}"
        )
    assert lines == [line.rstrip() for line in vectors()[path]["said"]]
