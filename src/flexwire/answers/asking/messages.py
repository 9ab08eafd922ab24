"""The content of messages: exchanges, topics and their records, and error codes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final, cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs
from pyspark.sql.types import ArrayType, StructField, StructType

from flexwire.answers.asking.told_names import told_names
from flexwire.protocol.error_codes import ERROR_NAMES, NO_ERROR, RETRIABLE
from flexwire.tables.keys import ANALYSIS, connection_key, frame_key
from flexwire.tables.schema import SIZE_SUFFIX
from flexwire.tables.spec_places import (
    KNOWN_TOPICS,
    RECORDS_FIELDS,
    error_places,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from pyspark.sql import Column
    from pyspark.sql.types import DataType

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.tables.spec_places import ErrorPlace, Path, RecordsField


# The string for a uuid that is not set.
_NO_ID: Final = "A" * 22


def known_id(uuid: Column) -> Column:
    """Return an id, such as a topic id, or null if it is not set."""
    return F.nullif(uuid, F.lit(_NO_ID))


def known_name(topic_id: Column) -> Column:
    """Return the name of a topic whose id is the same in every cluster."""
    topic_name = F.lit(None).cast("string")
    for known_topic_id, name in KNOWN_TOPICS.items():
        topic_name = F.when(topic_id == known_topic_id, name).otherwise(topic_name)
    return topic_name


def is_grown(tables: AnalysisTables) -> bool:
    """Return whether the tables contain several analyses, each of which may know different names.

    Each analysis fills in the topic names of its records from its own Metadata responses.
    """
    return ANALYSIS in tables.records.columns


def with_topic_names(
    rows: DataFrame, tables: AnalysisTables, ids: Mapping[str, Collection[Path]] | None = None
) -> DataFrame:
    """Fill in ``topic`` from ``topic_id``; if no name is known, the id is kept.

    ``ids`` are the columns of ids, by message. If none of these ids is set, no names are looked up.
    """
    rows = rows.withColumn("topic", F.coalesce("topic", known_name(F.col("topic_id"))))
    # Only a few names are kept, so checking whether they are needed would take longer than using
    # them.
    is_any = (
        ids is None
        or tables.told is not None
        or any(
            paths and not tables.hold_only(message, paths, _NO_ID) for message, paths in ids.items()
        )
    )
    names = told_names(tables) if is_any else None
    if names is not None:
        rows = rows.join(names, "topic_id", "left")
        rows = rows.withColumn("topic", F.coalesce("topic", "told")).drop("told")
    return rows.withColumn("topic_id", F.when(F.col("topic").isNull(), F.col("topic_id")))


@dataclass(frozen=True, slots=True)
class ExchangeFilter:
    """Which exchanges of an API to read: conditions on their tables, and the columns to return."""

    api_name: str
    request_column: Column
    response_column: Column
    request: Column | None = None
    response: Column | None = None


def exchanges(tables: AnalysisTables, api_name: str) -> DataFrame | None:
    """Return an API's answered requests with their responses, or None if no request was answered.

    Each row contains the key of its connection, ``client_id``, the times ``asked`` and
    ``answered``, and the bodies as ``request`` and ``response``.
    """
    return exchanges_of(tables, [ExchangeFilter(api_name, F.col("body"), F.col("body"))])


def exchanges_of(tables: AnalysisTables, filters: Sequence[ExchangeFilter]) -> DataFrame | None:
    """Return the exchanges of several APIs. All filters must return the same column types."""
    connection, frame = connection_key(tables.frames.columns), frame_key(tables.frames.columns)
    requests, responses, names = [], [], []
    for exchange in filters:
        request, response = requests_of(tables, exchange), responses_of(tables, exchange)
        if request is None or response is None:
            continue
        names.append(exchange.api_name)
        requests.append(request)
        responses.append(response)
    if not names:
        return None
    answers = reduce(DataFrame.unionByName, responses)
    with_responses = answers.join(answered_frames(tables, names), [*frame])
    all_requests = reduce(DataFrame.unionByName, requests)
    with_responses = with_responses.join(
        all_requests, ["api_name", *connection, "correlation_id", "asked"]
    )
    return with_responses.select(
        *connection, "client_id", "asked", "answered", "request", "response"
    )


def requests_of(tables: AnalysisTables, exchange: ExchangeFilter) -> DataFrame | None:
    """Return the selected requests of an API: connection, correlation id, time and columns."""
    table = tables.message(f"{exchange.api_name}Request")
    if table is None:
        return None
    if exchange.request is not None:
        table = table.where(exchange.request)
    return table.select(
        F.lit(exchange.api_name).alias("api_name"),
        *connection_key(table.columns),
        "correlation_id",
        F.col("time").alias("asked"),
        "client_id",
        exchange.request_column.alias("request"),
    )


def responses_of(tables: AnalysisTables, exchange: ExchangeFilter) -> DataFrame | None:
    """Return the selected responses of an API: frame key and columns."""
    table = tables.message(f"{exchange.api_name}Response")
    if table is None:
        return None
    if exchange.response is not None:
        table = table.where(exchange.response)
    return table.select(*frame_key(table.columns), exchange.response_column.alias("response"))


def answered_frames(tables: AnalysisTables, names: Sequence[str]) -> DataFrame:
    """Return these APIs' responses whose request is known, with the times of both messages.

    Each row also contains the correlation id, which identifies the request: a connection may reuse
    a correlation id, but not while a request with this id is pending.
    """
    is_answer = (F.col("direction") == "response") & F.col("latency_us").isNotNull()
    return tables.frames.where(is_answer & F.col("api_name").isin([*names])).select(
        "api_name",
        *frame_key(tables.frames.columns),
        "correlation_id",
        F.timestamp_micros(F.unix_micros("time") - F.col("latency_us")).alias("asked"),
        F.col("time").alias("answered"),
    )


TOPIC_IDS = {
    place.message: [("body", place.topics, place.topic_id)]
    for place in RECORDS_FIELDS
    if place.topic_id
}
"""The columns that contain the ids of the topics whose records a message carries, by message."""


def carried_topics(tables: AnalysisTables) -> DataFrame | None:
    """Return a row for each frame and each topic whose records the frame carries.

    The result is None if no frame can carry records. ``record_bytes`` is the size of the topic's
    record batches in the frame, including truncated batches. Records that a capture does not
    contain are omitted, because their size is unknown. A request log may lack a size, in which case
    ``record_bytes`` is null. ``is_first`` is true in the first row of each frame.
    """
    tables_of_topics = [
        _of(table, place)
        for place in RECORDS_FIELDS
        if (table := tables.message(place.message)) is not None
    ]
    return reduce(DataFrame.unionByName, tables_of_topics) if tables_of_topics else None


def record_bytes_of(message: str, table: DataFrame) -> Column:
    """Return the bytes of the record batches in a message, over all its topics."""
    place = next(error_place for error_place in RECORDS_FIELDS if error_place.message == message)
    sizes = F.transform(f"body.{place.topics}", lambda topic: _topic_bytes(topic, place, table))
    return _total(sizes)


def _of(table: DataFrame, place: RecordsField) -> DataFrame:
    def with_name(topic: Column) -> Column:
        name, number = place.topic_name, place.topic_id
        whole = _topic_bytes(topic, place, table)
        return F.struct(
            _text(None if name is None else topic[name]).alias("topic"),
            known_id(_text(None if number is None else topic[number])).alias("topic_id"),
            F.when(F.col("size").isNotNull() | ~_lacks_size(topic, place, table), whole).alias(
                "record_bytes"
            ),
        )

    at = (*frame_key(table.columns), "client_id", "time")
    topics = F.transform(f"body.{place.topics}", with_name)
    some = F.filter(topics, lambda topic: F.coalesce(topic["record_bytes"] > 0, F.lit(True)))
    each = table.select(*at, F.posexplode(some).alias("place", "of_topic"))
    return each.select(*at, "of_topic.*", (F.col("place") == 0).alias("is_first"))


def _topic_bytes(topic: Column, place: RecordsField, table: DataFrame) -> Column:
    return _total(_sizes(topic, place, table))


def _lacks_size(topic: Column, place: RecordsField, table: DataFrame) -> Column:
    """Return whether the size of any partition's records is null."""
    lacking = F.exists(_sizes(topic, place, table), lambda size: size.isNull())
    return F.coalesce(lacking, F.lit(False))


def _sizes(topic: Column, place: RecordsField, table: DataFrame) -> Column:
    """Return the record sizes of a topic's partitions, as an array."""
    partitions = topic[place.partitions]
    kind: Any = table.select(f"body.{place.topics}.{place.partitions}").schema[0].dataType
    sized = place.records + SIZE_SUFFIX
    if sized in kind.elementType.elementType.names:
        return partitions[sized]
    # The user specified that `analyze` keeps the bytes themselves.
    return F.transform(
        partitions[place.records], lambda record_bytes: F.length(record_bytes).cast("bigint")
    )


def _total(numbers: Column) -> Column:
    nothing = F.lit(0).cast("bigint")
    return F.aggregate(numbers, nothing, lambda total, number: total + F.coalesce(number, nothing))


def _text(column: Column | None) -> Column:
    return F.lit(None).cast("string") if column is None else column


_ERRORS: Final = "array<struct<field: string, code: int, topic: string, topic_id: string>>"


@dataclass(frozen=True, slots=True)
class ErrorStructure:
    """A structure in a body: its value, its columns, and its error codes.

    ``path`` contains the names of the columns that lead to the structure, and ``shown`` is this
    path as a string. ``topic`` and ``topic_id`` come from the enclosing structures.
    """

    value: Column
    kind: StructType
    places: tuple[ErrorPlace, ...]
    path: Path
    shown: str
    topic: Column
    topic_id: Column

    def has_error(self) -> Column:
        """Return whether any error code in the structure is not 0."""
        no = F.lit(col=False)
        conditions = [self.value[code] != NO_ERROR for code in self._codes()]
        for name, kind in self._inner():
            inside = partial(self._inside, name, kind)
            value = self.value[name]
            if isinstance(kind, ArrayType):
                conditions.append(F.exists(value, _of_each(ErrorStructure.has_error, inside)))
            else:
                conditions.append(inside(value).has_error())
        return reduce(
            lambda condition, next_condition: condition | F.coalesce(next_condition, no),
            conditions,
            no,
        )

    def errors(self) -> Column:
        """Return the error codes in the structure that are not 0, as an array of structures."""
        none = F.array().cast(_ERRORS)
        arrays = [self._error(code) for code in self._codes()]
        for name, kind in self._inner():
            inside = partial(self._inside, name, kind)
            value = self.value[name]
            if isinstance(kind, ArrayType):
                arrays.append(
                    F.flatten(F.transform(value, _of_each(ErrorStructure.errors, inside)))
                )
            else:
                arrays.append(inside(value).errors())
        return F.concat(none, *(F.coalesce(array, none) for array in arrays))

    def _codes(self) -> list[str]:
        return [
            place.path[-1]
            for place in self.places
            if place.path[:-1] == self.path and place.path[-1] in self.kind.names
        ]

    def _inner(self) -> Iterator[tuple[str, DataType]]:
        depth = len(self.path)
        names = {place.path[depth]: None for place in self.places if len(place.path) > depth + 1}
        return ((name, self.kind[name].dataType) for name in names if name in self.kind.names)

    def _error(self, code: str) -> Column:
        error = F.struct(
            F.lit(self.shown + code).alias("field"),
            self.value[code].cast("int").alias("code"),
            self.topic.alias("topic"),
            self.topic_id.alias("topic_id"),
        )
        return F.when(self.value[code] != NO_ERROR, F.array(error).cast(_ERRORS))

    def _inside(self, name: str, kind: DataType, value: Column) -> ErrorStructure:
        """Return the structure with this name, or an element of the array with this name."""
        is_array = isinstance(kind, ArrayType)
        path = (*self.path, name)
        return ErrorStructure(
            value,
            cast("StructType", kind.elementType if isinstance(kind, ArrayType) else kind),
            tuple(place for place in self.places if place.path[: len(path)] == path),
            path,
            f"{self.shown}{name}[]." if is_array else f"{self.shown}{name}.",
            self.topic,
            self.topic_id,
        ).with_topic()

    def with_topic(self) -> ErrorStructure:
        """Return the structure with the topic that it contains, if any."""
        structure = self
        for place in self.places:
            if place.topic is not None and self._has(place.topic):
                structure = replace(structure, topic=self.value[place.topic[-1]])
            if place.topic_id is not None and self._has(place.topic_id):
                structure = replace(structure, topic_id=known_id(self.value[place.topic_id[-1]]))
        return structure

    def _has(self, field: Path) -> bool:
        return field[:-1] == self.path and field[-1] in self.kind.names


def columns_of(table: DataFrame, message: str, others: Sequence[str]) -> StructType:
    """Return the columns of a message's table that contain errors, plus ``others``."""
    places = error_places(message)
    paths = {path for place in places for path in (place.path, place.topic, place.topic_id) if path}
    body = _only(cast("StructType", table.schema["body"].dataType), paths)
    return StructType([*(table.schema[name] for name in others), StructField("body", body)])


def _only(kind: StructType, paths: Collection[Path]) -> StructType:
    """Return the type of a structure, limited to the fields on these paths."""
    fields = []
    for field in kind:
        below = [path[1:] for path in paths if path[0] == field.name]
        inner = field.dataType
        if isinstance(inner, ArrayType) and isinstance(inner.elementType, StructType):
            inner = ArrayType(_only(inner.elementType, [path for path in below if path]))
        elif isinstance(inner, StructType):
            inner = _only(inner, [path for path in below if path])
        if below:
            fields.append(StructField(field.name, inner))
    return StructType(fields)


def body_of(table: DataFrame, message: str) -> ErrorStructure:
    """Return the body column of a message's table; a null body contains no errors."""
    kind = cast("StructType", table.schema["body"].dataType)
    nothing = F.lit(None).cast("string")
    body = ErrorStructure(F.col("body"), kind, error_places(message), (), "", nothing, nothing)
    return body.with_topic()


def _of_each(
    question: Callable[[ErrorStructure], Column], inside: Callable[[Column], ErrorStructure]
) -> Callable[[Column], Column]:
    # Spark counts the arguments of a function, so this function takes only one argument.
    return lambda element: question(inside(element))


def kafka_error_name(code: Column | str) -> Column:
    """Return the name of an error code, such as "NOT_COORDINATOR" for 16.

    Args:
        code: error codes, such as ``body.error_code`` of the message tables. The result is null for
            a null value and for a code that Kafka 4.4 does not define.
    """
    return _of_code({number: f"'{name}'" for number, name in ERROR_NAMES.items()}, code)


def kafka_error_is_retriable(code: Column | str) -> Column:
    """Return whether a retry may succeed after an error, or null, as in `kafka_error_name`."""
    return _of_code({number: str(number in RETRIABLE) for number in ERROR_NAMES}, code)


def _of_code(values: dict[int, str], code: Column | str) -> Column:
    """Return a SQL expression for the value of a code, which is null for a code without a value."""
    # As a SQL string, the expression requires one call to Java instead of hundreds.
    pairs = ", ".join(f"{number}, {value}" for number, value in values.items())
    return F.expr(f"map({pairs})")[(F.col(code) if isinstance(code, str) else code).cast("int")]
