"""The tables of an analysis: every column with its type and meaning.

The types are those of Spark (`flexwire.columnar.record_columns`). In Parquet every column may be
null. ``docs/tables.md`` is generated from this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from flexwire.capture.pairing.rows import PAIRED
from flexwire.capture.pairing.state import WITHHELD_BYTES
from flexwire.columnar.record_columns import BATCH_COLUMNS, MOMENT, RECORD_COLUMNS
from flexwire.facts.answers import ShownColumn
from flexwire.tables.keys import BEGAN_IN, CONNECTION_KEY, FRAME_KEY
from flexwire.tables.spec_places import RECORDS_FIELDS
from flexwire.tables.tagged_fields import TAGGED_FIELD_USES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.facts.answers import Kind


# The suffix of a records field's name if only the size of the field is kept.
SIZE_SUFFIX = "_size"
_PATHS = tuple(dict.fromkeys(field.path for field in RECORDS_FIELDS))


def type_without_record_bytes(kind: pa.StructType) -> pa.StructType:
    """Return the type of a message's column with int64 sizes in place of record bytes.

    The field ``records`` becomes ``records_size``. A message without records keeps its type.
    """
    for path in _PATHS:
        if _leads_to_bytes(kind, path):
            return _sized_type(kind, path)
    return kind


def without_record_bytes(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of a message's table with sizes in place of record bytes.

    A size is null if the field is null. A size is also null if the bytes are left out, because
    the size of missing bytes is unknown. Other columns are not copied.
    """
    at = rows.schema.get_field_index("body")
    body = rows.column(at)
    for path in _PATHS:
        if _leads_to_bytes(body.type, path):
            sized = _sized(body, path)
            return rows.set_column(at, pa.field("body", sized.type), sized)
    return rows


def with_sizes(rows: pa.RecordBatch, sizes: Sequence[int | None]) -> pa.RecordBatch:
    """Return rows of a message's table with the given sizes in place of record bytes.

    If the number of sizes differs from the number of partitions, the sizes cannot be assigned, and
    all sizes become null.
    """
    sized = without_record_bytes(rows)
    body = sized.column("body")
    for path in _PATHS:
        if _leads_to_bytes(rows.column("body").type, path):
            with_path = _put_sizes(body, (*path[:-1], path[-1] + SIZE_SUFFIX), sizes)
            return sized.set_column(rows.schema.get_field_index("body"), "body", with_path)
    return sized


def _put_sizes(array: pa.Array, path: tuple[str, ...], sizes: Sequence[int | None]) -> pa.Array:
    if not path:
        return pa.array(sizes, pa.int64()) if len(array) == len(sizes) else array
    if pa.types.is_list(array.type):
        layout = array.null_count, array.offset, [_put_sizes(array.values, path, sizes)]
        return pa.Array.from_buffers(array.type, len(array), array.buffers()[:2], *layout)
    at = array.type.get_field_index(path[0])
    fields = [array.field(number) for number in range(array.type.num_fields)]
    fields[at] = _put_sizes(fields[at], path[1:], sizes)
    nulls = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(fields, fields=list(array.type), mask=nulls)


def _leads_to_bytes(kind: pa.DataType, path: tuple[str, ...]) -> bool:
    if not path:
        return bool(kind == pa.binary())
    if pa.types.is_list(kind):
        kind = kind.value_type
    if not pa.types.is_struct(kind) or kind.get_field_index(path[0]) < 0:
        return False
    return _leads_to_bytes(kind.field(path[0]).type, path[1:])


def _sized_type(kind: pa.DataType, path: tuple[str, ...]) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_sized_type(kind.value_type, path))
    fields = list(kind)
    at = kind.get_field_index(path[0])
    if len(path) == 1:
        fields[at] = pa.field(path[0] + SIZE_SUFFIX, pa.int64())
    else:
        fields[at] = pa.field(path[0], _sized_type(fields[at].type, path[1:]))
    return pa.struct(fields)


def _sized(array: pa.Array, path: tuple[str, ...]) -> pa.Array:
    if not path:
        return _sizes(array)
    kind = _sized_type(array.type, path)
    if pa.types.is_list(array.type):
        children = [_sized(array.values, path)]
        layout = array.null_count, array.offset, children
        return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], *layout)
    at = array.type.get_field_index(path[0])
    fields = [array.field(number) for number in range(array.type.num_fields)]
    fields[at] = _sized(fields[at], path[1:])
    nulls = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=nulls)


def _sizes(data: pa.BinaryArray) -> pa.Int64Array:
    is_withheld = pc.equal(data, WITHHELD_BYTES)
    sizes = pc.binary_length(data).cast(pa.int64())
    if not is_withheld.true_count:
        return sizes
    return pc.if_else(is_withheld, pa.scalar(None, pa.int64()), sizes)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its meaning, and when it is null (an empty string means never).

    The report shows an answer's column if the column has a ``heading``. ``kind`` is the kind of the
    column's values. By default, it is derived from the type and the last word of the name.
    ``is_about`` marks columns that identify a row.
    """

    name: str
    type: pa.DataType
    meaning: str
    null: str = ""
    heading: str = ""
    kind: Kind | None = None
    is_about: bool = False

    def shown(self) -> ShownColumn:
        """Return the description of the column in the facts of an answer."""
        kind = self.kind or _kind(self.name, self.type)
        return ShownColumn(self.name, self.heading, kind, self.is_about)


# The kinds of numbers, by the last word of a column's name. Other numbers are counts.
_KINDS: dict[str, Kind] = {"us": "us", "bytes": "bytes", "share": "share"}


def _kind(name: str, of: pa.DataType) -> Kind:
    if pa.types.is_boolean(of):
        return "flag"
    if pa.types.is_temporal(of):
        return "moment"
    if pa.types.is_integer(of) or pa.types.is_floating(of):
        return _KINDS.get(name.rpartition("_")[2], "count")
    return "text"


_STRING, _INT, _LONG, _FLAG = pa.string(), pa.int32(), pa.int64(), pa.bool_()
_TEXTS = pa.list_(pa.string())
_OF_RECORDS = RECORD_COLUMNS | BATCH_COLUMNS


def _of_frame(name: str, meaning: str, null: str = "") -> Column:
    return Column(name, PAIRED.field(name).type, meaning, null)


_CONNECTION = _of_frame(
    "connection",
    'the two endpoints of the connection, with the client first: "10.0.0.9:50000>10.0.0.1:9092"; '
    'the name of a second connection between the same endpoints ends in "#2"',
)  # fmt: skip
_DIRECTION = _of_frame("direction", '"request" or "response"')
_NO_REQUEST = "for a response whose request is not in the capture"
_NOT_READ = "if no header was read"
_UNREAD = f"{_NOT_READ}, or {_NO_REQUEST}"
_OF_RECORD_BYTES = (
    "These tables omit the bytes of record batches, because the table ``records`` contains their "
    "records. In place of these bytes, the tables contain their size as a bigint: "
    "{}. The size is null if the bytes are null or withheld, or if a request log does not contain "
    "the size. With ``record_bytes=True``, the fields contain the bytes and keep their own names."
).format(
    "; ".join(
        f"in {field.message} ``{field.records}{SIZE_SUFFIX}`` instead of ``{field.records}``"
        for field in RECORDS_FIELDS
    )
)
_WHOLE = "for a finding about the client as a whole"
_LOGGED = "in request logs"
_NO_INSTANCE = "if no captured frame contains the id"
_CAPTURED = "in captures, or if no log line contains the value"
_NO_BATCH = "if the bytes are not a batch"
_NO_RECORD = "if the batch has no records, or its bytes cannot be read"


def _of_batch(name: str, meaning: str, null: str = _NO_BATCH) -> Column:
    return Column(name, _OF_RECORDS[name], meaning, null)


FRAMES = (
    _of_frame("time", "when the last byte of the frame was captured"),
    _CONNECTION,
    Column("client", _STRING, "the endpoint that sends the connection's requests"),
    Column("broker", _STRING, "the connection's other endpoint"),
    _DIRECTION,
    _of_frame("frame_index", "the number of the frame within its connection and direction, "
              "counted from 0; in a request log, an increasing number. Together, ``connection``, "
              "``direction`` and ``frame_index`` identify a frame in all tables of an analysis; in "
              "tables that grow, ``analysis`` is also needed"),
    _of_frame("message", 'the name of the message in the frame, such as "FetchRequest"', _UNREAD),
    _of_frame("api_key", "the api key; for a response, the api key of its request", _UNREAD),
    Column("api_name", _STRING, '``message`` without its last word, such as "Fetch"',
           "if ``message`` is null"),
    _of_frame("api_version", "the api version; for a response, the version of its request",
              _UNREAD),
    Column("body_version", _INT, "the version in which the body was decoded; it differs from "
           "``api_version`` if a broker answers ApiVersions in version 0",
           "if no body was decoded"),
    _of_frame("correlation_id", "the correlation id", _NOT_READ),
    _of_frame("client_id", "the client id; for a request without a client id, the last client id "
              "that was sent earlier on its connection (in request logs, the first client id in "
              "the connection's earlier lines); for a response, the client id of its request",
              f"{_UNREAD}; also if the captured part of the connection contains no earlier client "
              "id, or if the bytes cannot be a client id"),
    Column("client_software_name", _STRING, "the client software, as named in the connection's "
           "first ApiVersions request that contains the name",
           "if no request contains the name"),
    Column("client_software_version", _STRING, "the version of this software",
           "if no request contains the version"),
    Column("client_instance_id", _STRING, "the id of the client instance (KIP-714, KIP-1313): the "
           "first id that the header or body of a request contains, or that a response assigns; in "
           "request logs, the first id of the connection also applies to lines without an id",
           _NO_INSTANCE),
    _of_frame("header_version", "the version of the request or response header; 1 if the version "
              "of the request is not in the catalog, because a broker then reads the header in "
              "version 1; ``error`` explains this", _UNREAD),
    _of_frame("header_unknown_tagged_fields", "the tagged fields in the header, none of which "
              'Kafka knows; if they may be credentials, their bytes are replaced with "withheld"',
              f"{_UNREAD}; also if the header contains no tagged fields"),
    _of_frame("size", "the size of the frame on the wire in bytes, including its four-byte length "
                      "field",
                      "in a request log"),
    _of_frame("latency_us", "the time from the last byte of the request to the last byte of the "
              "response, in microseconds; if part of a frame is missing from the capture, the "
              "frame's last captured byte counts", f"for a request, or {_NO_REQUEST}"),
    _of_frame("answered", "whether the capture contains the response to the request",
              "for a response; for a request that expects no response, or whose header was not "
              "read; also if both the response and part of the request are missing from the "
              "capture"),
    _of_frame("outcome", "\"decoded\"; \"lenient\": the body violates its spec, but Kafka's Java "
              'code reads it; "failed": the framing, the header or the body cannot be '
              'read; "unpaired": a response without its request; "token": a bare SASL token, which '
              'contains no message; "not Kafka": the connection is not Kafka; "header": a request '
              "log contains only the header, or a broker's log states that the broker refused the "
              "request"),
    _of_frame("error", 'the reason why the frame is not "decoded"',
              'if the frame is "decoded"; for tokens; for '
              "frames that are not Kafka; and in text request logs"),
    Column("bytes", pa.binary(), "the bytes of the frame", "if the frame is decoded, or if the "
           "bytes may be credentials and the user did not ask for credentials"),
    _of_frame("withheld_credentials",
              "the number of fields that were withheld as credentials; 1 if all bytes were "
              "withheld"),
    _of_frame("source",
              "the capture file that contains the last byte of the frame, or the log that contains "
              "the request's line"),
)  # fmt: skip

CONNECTIONS = (
    _CONNECTION,
    Column("client", _STRING, "the endpoint that sends the connection's requests, or that would "
           "send requests if the connection were Kafka"),
    Column("broker", _STRING, "the connection's other endpoint"),
    Column("first_time", MOMENT, "when the first segment of the connection was captured"),
    Column("last_time", MOMENT, "when the last segment of the connection was captured"),
    Column("seen_from_start", _FLAG, "whether the SYN of the connection was captured"),
    Column("closed_by", _STRING, '"client" or "broker": the endpoint whose FIN or RST was captured '
           "first; for TLS decrypted with key logs, the endpoint that sent close_notify first",
           "if neither a FIN nor an RST was captured"),
    Column("reset", _FLAG, "whether the first FIN or RST was an RST"),
    Column("request_frames", _LONG, "the number of requests, including damaged ones"),
    Column("response_frames", _LONG, "the number of responses, including damaged ones"),
    Column("request_bytes", _LONG, "the number of bytes in the requests", _LOGGED),
    Column("response_bytes", _LONG, "the number of bytes in the responses", _LOGGED),
    Column("lost_bytes", _LONG, "the number of frame bytes that are missing from the capture",
           _LOGGED),
    Column("captured_bytes", _LONG,
           "the total number of bytes in the connection's segments: bytes in frames, repeated "
           "bytes and late bytes",
           _LOGGED),
    Column("repeated_bytes", _LONG, "the number of duplicate bytes, which belong to no frame",
           _LOGGED),
    Column("late_bytes", _LONG,
           "the number of bytes that arrived after they had been counted as lost; these bytes "
           "belong to no frame", _LOGGED),
    Column("early_bytes", _LONG,
           "the number of frame bytes that precede the first segment in their direction",
           _LOGGED),
    Column("unreadable_bytes", _LONG, "the number of other bytes in frames with an error", _LOGGED),
    Column("is_kafka", _FLAG, "whether the connection counts as Kafka"),
    Column("reads_as_kafka", _FLAG, "whether some bytes of the connection can be read as Kafka"),
    Column("evidence", _STRING,
           "the reason why the connection counts or does not count as Kafka"),
    Column("looks_like", _STRING, 'the other protocol to which the bytes seem to belong; "Kafka" '
           'if the bytes are Kafka but no endpoint was specified as a broker',
           "if the protocol is unknown, or if the connection is Kafka"),
    Column("principal", _STRING, "the principal of the client", _CAPTURED),
    Column("listener", _STRING, "the broker's listener to which the client connected",
           _CAPTURED),
    Column("security_protocol", _STRING,
           'the security protocol of the listener, such as "SASL_SSL"', _CAPTURED),
    Column("client_instance_id", _STRING, "the ``client_instance_id`` of the connection's frames; "
           "in request logs, the first id", _NO_INSTANCE),
    Column("client_id", _STRING, "the last client id of the connection's requests; in request "
           "logs, the first client id", "if no request has a client id"),
    Column("client_software_name", _STRING, "the ``client_software_name`` of the connection's "
           "frames; if the lines of a request log contain several names, the name that sorts last",
           "if no request contains the name"),
    Column("client_software_version", _STRING, "the version of this software",
           "if no request contains the version"),
    Column(BEGAN_IN, _STRING, "the analysis in which the connection began; a connection that "
           "spans several analyses has a row in each of them, with the counts of that "
           "analysis", "if the connection began in this analysis"),
    Column("answered_indexes", pa.list_(_LONG), "the ``frame_index`` of each request that is in "
           "an earlier analysis but whose response is in this analysis",
           "if there are no such requests"),
)  # fmt: skip

FORWARDED = (
    Column("time", MOMENT, "when the controller received the request"),
    Column("connection", _STRING, "the connection between the broker and the controller"),
    Column("broker", _STRING, "the controller's endpoint", ""),
    Column("listener", _STRING, "the controller's listener", "if the line is cut off"),
    Column("principal", _STRING, "the principal of the client", "if the line is cut off"),
    Column("client_id", _STRING, "the client id that the client itself sent",
           "if the client sent no client id or an empty one"),
    Column("api_key", _INT, "the api key"),
    Column("api_name", _STRING, "the name of the API", "if no release defines the api key"),
    Column("api_version", _INT, "the api version"),
    Column("correlation_id", _INT, "the correlation id of the client's request; together with "
           "``client_id``, it identifies that request. If the request with this id belongs to "
           "another API, the client never sent the forwarded request; a broker sends such requests "
           "when it creates a topic by itself"),
    Column("latency_us", _LONG, "the duration of the request, in microseconds",
           "if the line is cut off"),
    Column("frame_index", _LONG, "a number that identifies the line within the log"),
    Column("error", _STRING, "the reason why only the header is known",
           "if the whole request is known"),
    Column("source", _STRING, "the log file that contains the line"),
)  # fmt: skip

PACKETS = (
    Column("source", _STRING, "the capture file, or the log"),
    Column("reason", _STRING, "the reason why the packets were not used",
           "in the row for the whole file"),
    Column("packets", _LONG, "the number of packets in the file, or the number of packets that "
           "were not used for this reason; for a log, the number of lines"),
    Column("sample", pa.binary(), "the bytes of one packet that was not used",
           "in the row for the whole file; for packets that contain no TCP segment or have an "
           "unsupported link type; in the row that states why the file cannot be read; and if "
           "credentials are withheld"),
)  # fmt: skip

TOPIC_NAMES = (
    Column("topic_id", _STRING, "the topic's id"),
    Column("topic", _STRING, "the topic's name"),
)

RECORDS_TABLE = (
    Column("source", _STRING,
           'the message that carried the record: "produce", "fetch" or "share_fetch"'),
    _CONNECTION,
    Column("direction", _STRING, "the ``direction`` of the frame that contains the record"),
    Column("frame_index", _LONG, "the ``frame_index`` of that frame"),
    Column("time", MOMENT, "the ``time`` of the frame that contains the record"),
    Column("client_id", _STRING, "the ``client_id`` of that frame", "if the frame's ``client_id`` "
           "is null"),
    Column("topic", _STRING, "the name of the topic; if the message contains only the topic's id, "
           "the name comes from a Metadata response", "if no response contains the name"),
    Column("topic_id", _STRING, "the topic's id",
           "in message versions that contain only the topic's name"),
    Column("partition", _INT, "the partition"),
    _of_batch("offset", "the offset of the record", _NO_RECORD),
    _of_batch(
        "timestamp", "the timestamp of the record",
        f"{_NO_RECORD}; also if the record has no timestamp, or a timestamp outside the years 1 "
        "to 9999",
    ),
    _of_batch("timestamp_type",
              'the origin of the timestamp: "CreateTime", "LogAppendTime" or "NoTimestampType"'),
    _of_batch("key", "the key of the record", f"{_NO_RECORD}; also if the key is null"),
    _of_batch("value", "the value of the record", f"{_NO_RECORD}; also if the value is null"),
    _of_batch("headers", "the record headers, in order", _NO_RECORD),
    _of_batch("magic", "2 for a record batch; 0 or 1 for a message in a message set"),
    _of_batch("compression", '"none", "gzip", "snappy", "lz4" or "zstd"'),
    _of_batch("base_offset", "the batch's base offset; -1 for compressed messages"),
    _of_batch("last_offset",
              "the last offset of the batch; compaction may have removed the record at this "
              "offset"),
    _of_batch("batch_position", "the position of the batch within its partition's bytes in the "
              "frame; together, partition, frame and position identify a batch"),
    _of_batch("batch_size", "the size of the batch in bytes"),
    Column("batch_records", _INT,
           "the record count in the batch's header; -1 for compressed messages", _NO_BATCH),
    _of_batch("partition_leader_epoch",
              "the partition leader epoch; -1 if the batch has none"),
    _of_batch("producer_id", "the producer id; -1 if the batch has none"),
    _of_batch("producer_epoch", "the producer epoch; -1 if the batch has none"),
    _of_batch("base_sequence", "the base sequence; -1 if the batch has none"),
    _of_batch("is_transactional", "whether the batch is part of a transaction"),
    _of_batch("is_control", "whether the records are control records, which consumers skip"),
    Column("error", _STRING,
           "the reason why there is no record: the batch is damaged, cut off or withheld",
           "for a record, or for a batch without records"),
    Column("bytes", pa.binary(), "the bytes of the batch to which ``error`` refers",
           "for a record, for a batch without records, or if the bytes are withheld"),
)  # fmt: skip

MESSAGES = (
    _of_frame("message", "the message's name"),
    _CONNECTION,
    _DIRECTION,
    _of_frame("frame_index", "the ``frame_index`` of the message's frame"),
    _of_frame("time", "the ``time`` of the message's frame"),
    _of_frame("size", "the ``size`` of the message's frame", _LOGGED),
    _of_frame("client_id", "the ``client_id`` of the message's frame",
              "if the frame's ``client_id`` is null"),
    _of_frame("api_key", "the api key"),
    _of_frame("api_version", "the api version"),
    _of_frame("correlation_id", "the correlation id"),
    _of_frame("header_version", "the version of the request or response header",
              "if the header of a response cannot be read"),
    _of_frame("header_unknown_tagged_fields", "the tagged fields in the header"),
    Column("body_version", _INT, "the version in which the body was decoded",
           "if the body was not decoded"),
    _of_frame("withheld_credentials", "the number of fields that were withheld as credentials"),
    Column("tagged_fields", TAGGED_FIELD_USES, "the tagged fields in the body: for each field, its "
           "structure and tag, whether Kafka knows the tag, how often the field occurs, and its "
           "size"),
    _of_frame("error", "the reason why the body violates its spec",
              "if the body conforms to its spec"),
    Column("bytes", pa.binary(), "the bytes of the frame", "if ``error`` is null, or if the bytes "
           "may be credentials and the user did not ask for credentials"),
)  # fmt: skip
"""The columns that precede ``body``, the message itself, in all message tables."""


AUDIT = (
    Column("release", _STRING, "the release to which the finding applies"),
    Column("verdict", _STRING, "the verdict on the client: see [audit.md](audit.md)"),
    Column("evidence", _STRING, "the name of the rule that led to the verdict"),
    Column("reason", _STRING, "the reason for the verdict, as a sentence with figures"),
    Column("role", _STRING, '"client", "broker" or "controller"'),
    Column("client_id", _STRING, "the client id", "if the client id is unknown"),
    Column("address", _STRING, "the client's host", "if the host is unknown"),
    Column("principal", _STRING, "the client's principal",
           "if the principal is unknown, as in captures"),
    Column("client_software_name", _STRING, "the client's software",
           "if no request contains the name"),
    Column("client_software_version", _STRING, "the version of this software",
           "if no request contains the version"),
    Column("api_key", _INT, "the api key", _WHOLE),
    Column("api_name", _STRING, "the name of the API", _WHOLE),
    Column("api_version", _INT, "the api version", _WHOLE),
    Column("requests", _LONG, "the number of the client's requests; for a finding about a "
           "version, only the requests in that version"),
    Column("first_time", MOMENT, "when the first of these requests was captured"),
    Column("last_time", MOMENT, "when the last of these requests was captured"),
    Column("connections", _LONG, "the number of the client's connections; each connection "
           "counts for only one client"),
    Column("apis", _LONG, "the number of APIs that the client used"),
    Column("offered", _STRING, "the versions that the broker in the capture offered",
           "if the capture does not show which versions the broker offered"),
    Column("last_accepting_release", _STRING, "the last release that accepts the version",
           f"if no such release exists, or {_WHOLE}"),
    Column("first_refusing_release", _STRING, "the first release that does not accept the version",
           f"if no such release exists, or {_WHOLE}"),
    Column("groups", _TEXTS, "the first groups in the client's requests"),
    Column("group_count", _LONG, "the number of groups in the client's requests"),
    Column("topics", _TEXTS, "the first topics in the client's requests"),
    Column("topic_count", _LONG, "the number of topics in the client's requests"),
    Column("remedy", _STRING, "the recommended action; empty if no action is needed"),
    Column("source", _STRING, "the source of the verdict; empty if there is none"),
    Column("team", _STRING, "the client's team, as given in the label file",
           "if no label file lists this client"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its directory below ``tables/``, the meaning of a row, the columns and the key.

    The columns of ``key`` identify a row within one analysis. In tables that grow, ``analysis`` is
    needed too. Without a key, several rows may be equal.
    """

    place: str
    row: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()


TABLES = (
    Table("frames", "One row for each frame.", FRAMES, FRAME_KEY),
    Table("connections", "One row for each connection, including connections without frames.",
          CONNECTIONS, CONNECTION_KEY),
    Table(
        "messages/<Message>",
        "One row for each decoded request or response. All message tables have these columns and "
        "a last column, ``body``: a structure that contains every field of every version of the "
        "message, as listed in [reference/](reference/README.md). ``body`` is null if the bytes "
        "cannot be decoded. "
        + _OF_RECORD_BYTES,
        MESSAGES,
        FRAME_KEY,
    ),
    Table(
        "records",
        "One row for each record that was produced or fetched. Two other kinds of rows have no "
        "``offset``. A row of the first kind represents a batch without records; compaction can "
        "leave such batches behind. A row of the second kind has an ``error``, and its ``bytes`` "
        "cannot be read as a batch or as a batch's records. If a fetch response reached its size "
        "limit within a batch, a row of the second kind contains the start of that batch. Two rows "
        "share a key only if a frame lists a partition twice.",
        RECORDS_TABLE,
        (*FRAME_KEY, "topic", "topic_id", "partition", "batch_position", "offset"),
    ),
    Table(
        "packets",
        "For each capture file, one row for all its packets, and one row for each reason why some "
        "of its packets were not used.",
        PACKETS,
        ("source", "reason"),
    ),
    Table("audit", "One row for each client, release and finding.", AUDIT),
)  # fmt: skip

GROWN_TABLES = (
    Table(
        "topic_names",
        "This table exists only if the tables grow. It contains one row for each topic id whose "
        "name an analysis learned from Metadata responses, if no earlier analysis knew the name.",
        TOPIC_NAMES,
        ("topic_id",),
    ),
)
"""The tables that exist only if captures were appended."""

REQUEST_LOG_TABLES = (
    Table(
        "forwarded_requests",
        "This table exists only for request logs. It contains one row for each request that a "
        "broker forwarded to the controller for a client. No other table contains forwarded "
        "requests. The client's own request is in ``frames``.",
        FORWARDED,
        ("frame_index",),
    ),
)  # fmt: skip
"""The tables that exist only for an analysis of request logs."""


def schema_of(columns: tuple[Column, ...]) -> pa.Schema:
    """Return the schema of a table with these columns."""
    return pa.schema([(column.name, column.type) for column in columns])


FRAMES_TABLE = schema_of(FRAMES)
CONNECTIONS_TABLE = schema_of(CONNECTIONS)
OUTCOMES = schema_of(MESSAGES)
FORWARDED_TABLE = schema_of(FORWARDED)
PACKETS_TABLE = schema_of(PACKETS)
TOPIC_NAMES_TABLE = schema_of(TOPIC_NAMES)
AUDIT_TABLE = schema_of(AUDIT)
RECORDS = schema_of(RECORDS_TABLE)
