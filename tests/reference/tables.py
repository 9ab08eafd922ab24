"""Make the rows of every table of an analysis in plain Python, one row after another.

Bodies and records are objects (`flexwire.tables.messages.MessageBodies`, `object_rows`). This
module uses no columns, no ranges, and no survey.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
import pyarrow as pa

from flexwire.capture.pairing.state import FAILED
from flexwire.codec import message
from flexwire.protocol import response_header_version
from flexwire.records.inflation import INFLATION, Inflation
from flexwire.tables.frames import DECODED, LENIENT, OF_BODY, Introductions
from flexwire.tables.keys import FRAME_KEY
from flexwire.tables.message_schema import NEEDED, table_schema
from flexwire.tables.records import object_rows
from flexwire.tables.schema import (
    CONNECTIONS_TABLE,
    FRAMES_TABLE,
    PACKETS_TABLE,
    RECORDS,
)
from flexwire.tables.spec_places import KNOWN_TOPICS, RECORDS_FIELDS, TOPIC_NAMES_MESSAGE
from flexwire.wire.varint import uuid_text
from tests.reference.frames import NO_BROKERS, captured, paired_rows
from tests.tables.carrying import NO_ID
from tests.tables.message_frames import by_objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from flexwire.capture.reassembly.connections import BrokerEnds, CapturedConnection
    from flexwire.tables.spec_places import RecordsField
    from tests.reference.frames import Note, Row

    Tables = dict[str, list[Row]]

SOFTWARE_MESSAGE = "ApiVersionsRequest"
"""The field in which a client names its software, since version 3 (KIP-511)."""
# The position of the client instance id in each body (KIP-714).
INSTANCE_MESSAGES = {
    "GetTelemetrySubscriptionsRequest": 0,
    "GetTelemetrySubscriptionsResponse": 6,
    "PushTelemetryRequest": 0,
}
NO_UUID = bytes(16)
_CONNECTION = re.compile(r"^(.*)>(.*?)(#\d+)?$")
_RENAMED = {"first_us": "first_time", "last_us": "last_time"}


def tables(
    files: Iterable[str | Path],
    brokers: BrokerEnds = NO_BROKERS,
    *,
    release: str | None = None,
    show_credentials: bool = False,
    inflation: Inflation = INFLATION,
) -> Tables:
    """Return the rows of all tables of an analysis, by path; messages keep their record bytes.

    If ``inflation`` is given, it bounds each batch.
    """
    found = captured(files, brokers, show_credentials=show_credentials)
    paired = paired_rows(found.frames, found.connections, show_credentials=show_credentials)
    messages = {
        name: message_rows(
            (row for row in paired if row["body"] == name),
            name,
            release=release,
            show_credentials=show_credentials,
        )
        for name in sorted({row["body"] for row in paired} - {None})
    }
    records = [
        row
        for where in RECORDS_FIELDS
        for row in record_rows(
            messages.get(where.message, []),
            where,
            topic_names(messages.get(TOPIC_NAMES_MESSAGE, [])),
            inflation,
        )
    ]
    outcomes = {key_of(row): row for rows in messages.values() for row in rows}
    known = Introductions(
        software_of(messages.get(SOFTWARE_MESSAGE, [])), instances_of(paired, found.connections)
    )
    return {
        "frames": as_stored(
            (frame_row(row, outcomes.get(key_of(row)), known) for row in paired), FRAMES_TABLE
        ),
        "connections": as_stored(
            (connection_row(one, known, client_ids_of(paired)) for one in found.connections),
            CONNECTIONS_TABLE,
        ),
        "packets": as_stored(map(packet_row, found.notes), PACKETS_TABLE),
        "records": as_stored(records, RECORDS),
        **{f"messages/{name}": rows for name, rows in messages.items()},
    }


def as_stored(rows: Iterable[Row], schema: pa.Schema) -> list[Row]:
    """Return rows in the form of their table; columns that are not named are null."""
    stored: list[Row] = pa.Table.from_pylist(list(rows), schema).to_pylist()
    return stored


def key_of(row: Row) -> tuple[Any, ...]:
    """Return the key of a frame."""
    return tuple(row[name] for name in FRAME_KEY)


def message_rows(
    paired: Iterable[Row], name: str, *, release: str | None = None, show_credentials: bool = False
) -> list[Row]:
    """Return the rows of one message's table, from the paired frames that carry it."""
    rows = [{one: row.get(one) for one in NEEDED.names} for row in paired]
    frames = pa.RecordBatch.from_pylist(rows, NEEDED)
    made = by_objects(frames, name, release, show=show_credentials)
    assert made.schema == table_schema(name, release)
    told: list[Row] = made.to_pylist()
    return told


def topic_names(metadata: Iterable[Row]) -> dict[str, str]:
    """Return topic names by id; if an id has two names, return the one that sorts last."""
    found: dict[str, str] = {}
    for row in metadata:
        for topic in (row["body"] or {}).get("topics") or ():
            identity, name = topic["topic_id"], topic["name"]
            if identity is not None and name is not None:
                found[identity] = max(name, found.get(identity, name))
    return found | KNOWN_TOPICS


def record_rows(
    messages: Iterable[Row], where: RecordsField, names: Mapping[str, str], inflation: Inflation
) -> Iterator[Row]:
    """Yield the rows of a message's records, one partition after the other."""
    for row in messages:
        of_frame = {
            name: row[name]
            for name in ("connection", "direction", "frame_index", "time", "client_id")
        }
        for topic in (row["body"] or {}).get(where.topics) or ():
            name = _text(topic.get(where.topic_name)) if where.topic_name else None
            identity = _text(topic.get(where.topic_id)) if where.topic_id else None
            if name is None and identity is not None:
                name = names.get(identity)
            for partition in topic.get(where.partitions) or ():
                told = {
                    "source": where.source,
                    **of_frame,
                    "topic": name,
                    "topic_id": identity,
                    "partition": partition[where.partition],
                }
                data = partition[where.records] or b""
                for record, _ in object_rows(data, inflation=inflation):
                    yield told | dict(zip(RECORDS.names[len(told) :], record, strict=True))


def _text(value: str | None) -> str | None:
    # A version has either a name or an id, and the other is "" or the zero uuid.
    return None if value in {"", NO_ID} else value


def software_of(requests: Iterable[Row]) -> dict[str, tuple[str, str | None]]:
    """Return the software of each connection's client, by its first request that names it."""
    found: dict[str, tuple[str, str | None]] = {}
    for row in sorted(requests, key=lambda row: row["frame_index"]):
        body = row["body"] or {}
        if body.get("client_software_name"):
            told = body["client_software_name"], body["client_software_version"] or None
            found.setdefault(row["connection"], told)
    return found


def instances_of(
    paired: Iterable[Row], connections: Iterable[CapturedConnection]
) -> dict[str, str]:
    """Return the client instance id of each Kafka connection, from the first frame that has it.

    A response is ignored if its request was captured after it.
    """
    is_kafka = {one.connection: one.is_kafka and one.reads_as_kafka for one in connections}
    asked: set[tuple[Any, ...]] = set()
    given: dict[str, list[tuple[Any, ...]]] = {}
    for row in paired:
        is_response = row["direction"] == "response"
        if is_response:
            sent = None if row["latency_us"] is None else row["time"] - row["latency_us"]
            if (row["connection"], row["correlation_id"], sent) not in asked:
                continue
        else:
            asked.add((row["connection"], row["correlation_id"], row["time"]))
        instance = row.get("client_instance_id") or _instance_in_body(row)
        if instance is not None and is_kafka[row["connection"]]:
            order = row["time"], is_response, row["frame_index"], uuid_text(instance)
            given.setdefault(row["connection"], []).append(order)
    return {connection: min(orders)[-1] for connection, orders in given.items()}


def _instance_in_body(row: Row) -> UUID | None:
    """Return the id in a body, even if later bytes are damaged."""
    if row["body"] not in INSTANCE_MESSAGES:
        return None
    at = INSTANCE_MESSAGES[row["body"]]
    fields = message(row["body"]).definition.schema
    version, header = row["api_version"], row["body_offset"]
    if header is None:
        _, header = message("ResponseHeader").decode_prefix(
            row["payload"], response_header_version(row["api_key"], version)
        )
    if "client_instance_id" not in [one.attribute for one in fields(version).inline]:
        return None
    data = row["payload"][header + at :][:16]
    return UUID(bytes=data) if len(data) == len(NO_UUID) and data != NO_UUID else None


def frame_row(paired: Row, outcome: Row | None, known: Introductions) -> Row:
    """Return the row of a frame; ``outcome`` is its row in its message's table."""
    row = {**paired, "bytes": paired["payload"]}
    if outcome is not None:
        row |= {name: outcome[name] for name in OF_BODY}
        broken = FAILED if row["body_version"] is None else LENIENT
        row["outcome"] = DECODED if row["error"] is None else broken
    if row["outcome"] in {None, DECODED}:
        row["bytes"] = None
    ends = _CONNECTION.match(row["connection"])
    row["client"], row["broker"] = ends.groups()[:2] if ends else ("", "")
    row["api_name"] = row["message"] and re.sub("(Request|Response)$", "", row["message"])
    name, version = known.software.get(row["connection"], (None, None))
    return row | {
        "client_software_name": name,
        "client_software_version": version,
        "client_instance_id": known.instances.get(row["connection"]),
    }


def client_ids_of(paired: Iterable[Row]) -> dict[str, str]:
    """Return the last client id in the requests on each connection."""
    requests = [row for row in paired if row["direction"] == "request"]
    requests.sort(key=lambda row: row["frame_index"])
    return {
        row["connection"]: row["client_id"] for row in requests if row.get("client_id") is not None
    }


def connection_row(
    connection: CapturedConnection, known: Introductions, client_ids: Mapping[str, str]
) -> Row:
    """Return the row of a connection."""
    facts = msgspec.structs.asdict(connection)
    name = connection.connection
    software = known.software if connection.is_kafka and connection.reads_as_kafka else {}
    facts["client_instance_id"] = known.instances.get(name)
    facts["client_id"] = client_ids.get(name)
    facts["client_software_name"], facts["client_software_version"] = software.get(
        name, (None, None)
    )
    return {_RENAMED.get(name, name): value for name, value in facts.items()}


def packet_row(note: Note) -> Row:
    """Return the row of a note about a file's packets."""
    return note._asdict()
