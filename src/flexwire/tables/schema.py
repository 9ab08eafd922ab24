"""The tables of an analysis: every column, its type and its meaning, once.

The types are Spark's own (`flexwire.columnar.record_columns`), and every column may be null as far
as Parquet is concerned. ``docs/tables.md`` is written from here.
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
from flexwire.tables.spec_places import RECORDS_FIELDS
from flexwire.tables.tagged_fields import TAGGED_FIELD_USES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.facts.answers import Kind


# What a field of records is called where only its size is kept.
SIZE_SUFFIX = "_size"
_PATHS = tuple(dict.fromkeys(one.path for one in RECORDS_FIELDS))


def type_without_record_bytes(kind: pa.StructType) -> pa.StructType:
    """The type of a message's column with an int64 in the place of record bytes.

    Where they were ``records`` it is ``records_size``; a message without records has its type.
    """
    for path in _PATHS:
        if _leads_to_bytes(kind, path):
            return _sized_type(kind, path)
    return kind


def without_record_bytes(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of a message's table with the sizes of record bytes in their place.

    A size is null where the field is null, and where the bytes are withheld: theirs is not known.
    Nothing else is copied.
    """
    at = rows.schema.get_field_index("body")
    body = rows.column(at)
    for path in _PATHS:
        if _leads_to_bytes(body.type, path):
            sized = _sized(body, path)
            return rows.set_column(at, pa.field("body", sized.type), sized)
    return rows


def with_sizes(rows: pa.RecordBatch, sizes: Sequence[int | None]) -> pa.RecordBatch:
    """Rows of a message's table with these sizes in the place of record bytes, in their order.

    Where there is another number of them than of partitions, which is which is not known: all are
    null then.
    """
    sized = without_record_bytes(rows)
    body = sized.column("body")
    for path in _PATHS:
        if _leads_to_bytes(rows.column("body").type, path):
            told = _told(body, (*path[:-1], path[-1] + SIZE_SUFFIX), sizes)
            return sized.set_column(rows.schema.get_field_index("body"), "body", told)
    return sized


def _told(array: pa.Array, path: tuple[str, ...], sizes: Sequence[int | None]) -> pa.Array:
    if not path:
        return pa.array(sizes, pa.int64()) if len(array) == len(sizes) else array
    if pa.types.is_list(array.type):
        found = array.null_count, array.offset, [_told(array.values, path, sizes)]
        return pa.Array.from_buffers(array.type, len(array), array.buffers()[:2], *found)
    at = array.type.get_field_index(path[0])
    fields = [array.field(number) for number in range(array.type.num_fields)]
    fields[at] = _told(fields[at], path[1:], sizes)
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
        found = array.null_count, array.offset, children
        return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], *found)
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
    """A column of a table: what it means, and when it is null (never, where that is empty).

    The report shows a column of an answer that has a ``heading``. ``kind`` is what its values are;
    without one the type and the last word of the name say it. ``is_about`` marks what tells rows
    apart.
    """

    name: str
    type: pa.DataType
    meaning: str
    null: str = ""
    heading: str = ""
    kind: Kind | None = None
    is_about: bool = False

    def shown(self) -> ShownColumn:
        """Return what the facts of an answer have of the column."""
        kind = self.kind or _kind(self.name, self.type)
        return ShownColumn(self.name, self.heading, kind, self.is_about)


# What whole numbers and fractions are, by the last word of their name; others count something.
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
    "connection", 'its ends, client first: "10.0.0.9:50000>10.0.0.1:9092"; a second '
    'connection with these ends has "#2" after it',
)  # fmt: skip
_DIRECTION = _of_frame("direction", '"request" or "response"')
_NO_REQUEST = "of a response without its request"
_NOT_READ = "where no header was read"
_UNREAD = f"{_NOT_READ}; {_NO_REQUEST}"
_OF_RECORD_BYTES = (
    "The bytes of record batches are left out, as their records stand in the table ``records``. "
    "In their place is how many they are, a bigint, null where they are null or withheld, and "
    "where a request log does not say it: {}. With "
    "``record_bytes=True`` the fields hold the bytes, under their own names."
).format(
    "; ".join(
        f"in {one.message} ``{one.records}{SIZE_SUFFIX}`` instead of ``{one.records}``"
        for one in RECORDS_FIELDS
    )
)
_WHOLE = "of a finding about the client as a whole"
_LOGGED = "in request logs"
_CAPTURED = "in captures, which do not say it, and where no line of a log does"
_NO_BATCH = "of bytes that are not a batch"
_NO_RECORD = "of a batch without records, and of bytes that do not read"


def _of_batch(name: str, meaning: str, null: str = _NO_BATCH) -> Column:
    return Column(name, _OF_RECORDS[name], meaning, null)


FRAMES = (
    _of_frame("time", "when its last byte was captured"),
    _CONNECTION,
    Column("client", _STRING, "the connection's end that sends requests"),
    Column("broker", _STRING, "the other end"),
    _DIRECTION,
    _of_frame(
        "frame_index",
        "its place among the frames of its connection and direction, from 0 on, or of a request "
        "log a number that grows. These three identify a frame in all tables of an analysis; in "
        "tables that grow, with ``analysis``",
    ),
    _of_frame("message", 'what it carries: "FetchRequest"', _UNREAD),
    _of_frame("api_key", "the api key; a response has its request's", _UNREAD),
    Column("api_name", _STRING, '``message`` without its last word: "Fetch"', "with ``message``"),
    _of_frame("api_version", "the api version; a response has its request's", _UNREAD),
    Column(
        "body_version", _INT, "the version that the body was decoded with, which is another one "
        "where a broker answers ApiVersions in version 0", "where no body was decoded",
    ),
    _of_frame("correlation_id", "the correlation id", _NOT_READ),
    _of_frame(
        "client_id", "the client id; a response has its request's",
        f"{_UNREAD}; where the client sent null, or what it sent is not to be believed",
    ),
    Column(
        "client_software_name", _STRING, "what software the client is, as the connection's first "
        "ApiVersions request that names it says", "where none does",
    ),
    Column("client_software_version", _STRING, "its version", "where none says it"),
    _of_frame("header_version", "the version of the request or response header", _UNREAD),
    _of_frame(
        "header_unknown_tagged_fields",
        "the tagged fields in the header, none of which Kafka knows; where they may be "
        'credentials, their bytes are "withheld"', f"{_UNREAD}; or it is empty there",
    ),
    _of_frame("size", "its bytes on the wire, with the four of its length", "in a request log"),
    _of_frame(
        "latency_us", "from its request's last byte to its own, in microseconds; of a frame "
        "that the capture has only a part of, the last byte that was captured",
        f"of a request; {_NO_REQUEST}",
    ),
    _of_frame(
        "answered", "whether the capture holds its response",
        "of a response; of a request that expects none, or whose header was not read; where the "
        "capture lacks a part of the request, and has no response to it",
    ),
    _of_frame(
        "outcome", '"decoded"; "lenient": the body breaks its spec, and decodes as '
        'Kafka\'s Java reads it; "failed": framing, header or body; "unpaired": a response '
        'without its request; "token": of a SASL exchange, which has no message; "not Kafka": of a '
        'connection that is not; "header": of a request log that gives but the header, or of a '
        "request that a broker's log says it refused",
    ),
    _of_frame("error", 'why it is not "decoded"', "where it is, of tokens, of what is "
           "not Kafka, and of request logs that are text"),
    Column(
        "bytes", pa.binary(), "its bytes", "where it is decoded; where they may be credentials, "
        "unless these were asked for",
    ),
    _of_frame(
        "withheld_credentials",
        "how many fields were withheld as credentials; 1 where all bytes were",
    ),
    _of_frame("source", "the capture file of its last byte, or the log of its line"),
)  # fmt: skip

CONNECTIONS = (
    _CONNECTION,
    Column("client", _STRING, "its end that sends requests, or would if it were Kafka"),
    Column("broker", _STRING, "its other end"),
    Column("first_time", MOMENT, "when its first segment was captured"),
    Column("last_time", MOMENT, "when its last segment was captured"),
    Column("seen_from_start", _FLAG, "whether its SYN was captured"),
    Column(
        "closed_by", _STRING, '"client" or "broker": whose FIN or RST was captured first; of TLS '
        "that key logs open, who sent close_notify first",
        "where none was",
    ),
    Column("reset", _FLAG, "whether that was a RST"),
    Column("request_frames", _LONG, "its requests, damaged ones too"),
    Column("response_frames", _LONG, "its responses, damaged ones too"),
    Column("request_bytes", _LONG, "their bytes", _LOGGED),
    Column("response_bytes", _LONG, "their bytes", _LOGGED),
    Column("lost_bytes", _LONG, "bytes of frames that the capture lacks", _LOGGED),
    Column(
        "captured_bytes", _LONG,
        "all bytes of its segments: in frames, repeated or late", _LOGGED,
    ),
    Column("repeated_bytes", _LONG, "bytes that came again, which are in no frame", _LOGGED),
    Column(
        "late_bytes", _LONG, "bytes that came after their place was given up as lost, which are "
        "in no frame", _LOGGED,
    ),
    Column("early_bytes", _LONG, "bytes of frames from before the first segment of a direction",
           _LOGGED),
    Column("unreadable_bytes", _LONG, "other bytes of frames that have an error", _LOGGED),
    Column("is_kafka", _FLAG, "whether it is Kafka"),
    Column("reads_as_kafka", _FLAG, "whether something in it reads as Kafka"),
    Column("evidence", _STRING, "why it is Kafka, or is not"),
    Column(
        "looks_like", _STRING, 'another protocol that its bytes seem to be, or "Kafka" where '
        "only its ends speak against it", "where nothing is known, and where it is Kafka",
    ),
    Column("principal", _STRING, "the principal of its client", _CAPTURED),
    Column("listener", _STRING, "the broker's listener that it came to", _CAPTURED),
    Column(
        "security_protocol", _STRING, 'that of the listener: "SASL_SSL"', _CAPTURED
    ),
)  # fmt: skip

FORWARDED = (
    Column("time", MOMENT, "when it came to the controller"),
    Column("connection", _STRING, "the connection between broker and controller"),
    Column("broker", _STRING, "the controller's end", ""),
    Column("listener", _STRING, "the controller's listener", "where the line is cut"),
    Column("principal", _STRING, "the principal of the client", "where the line is cut"),
    Column("client_id", _STRING, "the client's own client id", "where it sent null"),
    Column("api_key", _INT, "the api key"),
    Column("api_name", _STRING, "the name of the api", "where no release has the api key"),
    Column("api_version", _INT, "the api version"),
    Column(
        "correlation_id", _INT, "that of the client's request; with ``client_id`` it says whose "
        "this is. Where that is another API, as with topics that are created by themselves, the "
        "client never sent this",
    ),
    Column("latency_us", _LONG, "how long it took, in microseconds", "where the line is cut"),
    Column("frame_index", _LONG, "a number that no other line has"),
    Column("error", _STRING, "why nothing but the header is known", "where all is"),
    Column("source", _STRING, "the log of its line"),
)  # fmt: skip

PACKETS = (
    Column("source", _STRING, "the capture file, or the log"),
    Column("reason", _STRING, "why packets were not used", "in the row of the whole file"),
    Column(
        "packets", _LONG, "how many: of the file, or not used for this reason; of a log its lines"
    ),
    Column(
        "sample", pa.binary(), "the bytes of one such packet",
        "in the row of the whole file, of packets of another kind, and where credentials are "
        "withheld",
    ),
)  # fmt: skip

RECORDS_TABLE = (
    Column(
        "source", _STRING, 'the message that carried it: "produce", "fetch" or "share_fetch"'
    ),
    _CONNECTION,
    Column("direction", _STRING, "``direction`` of the frame that carried it"),
    Column("frame_index", _LONG, "``frame_index`` of that frame"),
    Column("time", MOMENT, "``time`` of that frame"),
    Column("client_id", _STRING, "``client_id`` of that frame", "with that of the frame"),
    Column(
        "topic", _STRING, "the topic's name, from a Metadata response where the message has only "
        "its id", "where none tells it",
    ),
    Column("topic_id", _STRING, "the topic's id", "in versions that have only its name"),
    Column("partition", _INT, "the partition"),
    _of_batch("offset", "its offset", _NO_RECORD),
    _of_batch(
        "timestamp", "its timestamp",
        f"{_NO_RECORD}; where it has none, or one in no year from 1 to 9999",
    ),
    _of_batch(
        "timestamp_type", 'what set it: "CreateTime", "LogAppendTime" or "NoTimestampType"'
    ),
    _of_batch("key", "its key", f"{_NO_RECORD}; where its key is null"),
    _of_batch("value", "its value", f"{_NO_RECORD}; where its value is null"),
    _of_batch("headers", "its record headers, in order", _NO_RECORD),
    _of_batch("magic", "2 for a record batch, 0 and 1 for messages of a message set"),
    _of_batch("compression", '"none", "gzip", "snappy", "lz4" or "zstd"'),
    _of_batch("base_offset", "the batch's base offset; -1 of compressed messages"),
    _of_batch("last_offset", "the batch's last offset, whose record compaction may have removed"),
    _of_batch(
        "batch_position", "where the batch begins among the bytes of its partition in that frame: "
        "with partition and frame it says which batch it is",
    ),
    _of_batch("batch_size", "the bytes of the batch"),
    Column(
        "batch_records", _INT, "how many records the batch says it has; -1 of compressed messages",
        _NO_BATCH,
    ),
    _of_batch("partition_leader_epoch", "the partition leader epoch; -1 where there is none"),
    _of_batch("producer_id", "the producer id; -1 where there is none"),
    _of_batch("producer_epoch", "the producer epoch; -1 where there is none"),
    _of_batch("base_sequence", "the base sequence; -1 where there is none"),
    _of_batch("is_transactional", "whether the batch is part of a transaction"),
    _of_batch("is_control", "whether these are control records, which no consumer is given"),
    Column(
        "error", _STRING, "why there is no record: a batch that is damaged, cut off or withheld",
        "of records, and of a batch without records",
    ),
    Column(
        "bytes", pa.binary(), "the bytes that this is about",
        "of records, of a batch without records, and of what is withheld",
    ),
)  # fmt: skip

MESSAGES = (
    _of_frame("message", "the message's name"),
    _CONNECTION,
    _DIRECTION,
    _of_frame("frame_index", "``frame_index`` of its frame"),
    _of_frame("time", "``time`` of its frame"),
    _of_frame("size", "``size`` of its frame", _LOGGED),
    _of_frame("client_id", "``client_id`` of its frame", "with that of the frame"),
    _of_frame("api_key", "the api key"),
    _of_frame("api_version", "the api version"),
    _of_frame("correlation_id", "the correlation id"),
    _of_frame(
        "header_version", "the version of the request or response header",
        "of a response whose header does not read",
    ),
    _of_frame(
        "header_unknown_tagged_fields", "the tagged fields in the header"
    ),
    Column(
        "body_version", _INT, "the version that the body was decoded with", "where it was not"
    ),
    _of_frame("withheld_credentials", "how many fields were withheld as credentials"),
    Column(
        "tagged_fields", TAGGED_FIELD_USES, "the tagged fields in the body: in which structure, "
        "which tag, whether it is known, how often and how large",
    ),
    _of_frame("error", "why the body breaks its spec", "where it does not"),
    Column(
        "bytes", pa.binary(), "the bytes of the frame",
        "where there is no ``error``; where they may be credentials, unless these were asked for",
    ),
)  # fmt: skip
"""The columns that all message tables have, before ``body``: the message itself."""


AUDIT = (
    Column("release", _STRING, "the release that the finding is about"),
    Column("verdict", _STRING, "what it means to the client: see [audit.md](audit.md)"),
    Column("evidence", _STRING, "which rule gave the verdict"),
    Column("reason", _STRING, "the same in a sentence, with its figures"),
    Column("role", _STRING, '"client", "broker" or "controller"'),
    Column("client_id", _STRING, "the client id", "where it is not known"),
    Column("address", _STRING, "the client's host", "where it is not known"),
    Column("principal", _STRING, "the client's principal", "where it is not known: in captures"),
    Column("client_software_name", _STRING, "what software the client is", "where none told it"),
    Column("client_software_version", _STRING, "its version", "where none told it"),
    Column("api_key", _INT, "the api key", _WHOLE),
    Column("api_name", _STRING, "the name of the api", _WHOLE),
    Column("api_version", _INT, "the api version", _WHOLE),
    Column("requests", _LONG, "the client's requests, of this version if there is one"),
    Column("first_time", MOMENT, "when the first of these was captured"),
    Column("last_time", MOMENT, "when the last of these was captured"),
    Column("connections", _LONG, "the connections that count for the client: each counts once"),
    Column("apis", _LONG, "how many apis the client used"),
    Column(
        "offered", _STRING, "the versions that the captured broker offered", "where none was seen"
    ),
    Column(
        "last_accepting_release", _STRING, "the last release that reads the version",
        f"where there is none; {_WHOLE}",
    ),
    Column(
        "first_refusing_release", _STRING, "the first release that does not",
        f"where there is none; {_WHOLE}",
    ),
    Column("groups", _TEXTS, "the first groups that the client named"),
    Column("group_count", _LONG, "how many groups it named"),
    Column("topics", _TEXTS, "the first topics that the client named"),
    Column("topic_count", _LONG, "how many topics it named"),
    Column("remedy", _STRING, "what to do; empty where there is nothing to do"),
    Column("source", _STRING, "where this is said; empty where nobody else says it"),
    Column(
        "team", _STRING, "whose client it is, as the labels say",
        "without labels, and where none is of this client",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the directory below ``tables/``, what a row of it is, and its columns."""

    place: str
    row: str
    columns: tuple[Column, ...]


TABLES = (
    Table("frames", "One row a frame.", FRAMES),
    Table("connections", "One row a connection, those over which nothing was sent too.",
          CONNECTIONS),
    Table(
        "messages/<Message>",
        "One row a request or response, decoded. After these columns, which all message tables "
        "have, comes ``body``: a structure with every field of every version of the message, as "
        "[reference/](reference/README.md) lists them, null where the bytes do not decode. "
        + _OF_RECORD_BYTES,
        MESSAGES,
    ),
    Table(
        "records",
        "One row a record that was produced or fetched. Two other kinds of row have no ``offset``: "
        "a batch without records, as compaction leaves it; and bytes that do not read as a batch "
        "or its records, with ``error`` and ``bytes``, the start of a batch that a full fetch was "
        "cut off in among them.",
        RECORDS_TABLE,
    ),
    Table(
        "packets",
        "One row a capture file with all its packets, and one for each reason why some were not "
        "used.",
        PACKETS,
    ),
    Table("audit", "One row a client, release and finding.", AUDIT),
)  # fmt: skip

REQUEST_LOG_TABLES = (
    Table(
        "forwarded_requests",
        "Only of request logs: one row a request that a broker forwarded to the controller for a "
        "client, which is in no other table. What the client itself sent is in ``frames``.",
        FORWARDED,
    ),
)  # fmt: skip
"""The tables that only an analysis of request logs has."""


def schema_of(columns: tuple[Column, ...]) -> pa.Schema:
    """The schema of a table with these columns."""
    return pa.schema([(one.name, one.type) for one in columns])


FRAMES_TABLE = schema_of(FRAMES)
CONNECTIONS_TABLE = schema_of(CONNECTIONS)
OUTCOMES = schema_of(MESSAGES)
FORWARDED_TABLE = schema_of(FORWARDED)
PACKETS_TABLE = schema_of(PACKETS)
AUDIT_TABLE = schema_of(AUDIT)
RECORDS = schema_of(RECORDS_TABLE)
