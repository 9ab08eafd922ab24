"""The public column functions, in Python and in SQL."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import pyarrow as pa
import pyspark
from pyspark.sql import Column
from pyspark.sql.pandas.types import from_arrow_type

from flexwire.arguments import refuse, to_choice, to_list, to_text, to_version
from flexwire.columnar import RECORD_COLUMNS
from flexwire.columnar.decoding import column_names
from flexwire.errors import AnalysisError
from flexwire.schema.catalog import catalog, use_packed_catalog
from flexwire.schema.spec import snake_case
from flexwire.spark.functions import messages, records
from flexwire.spark.functions.headers import (
    HEADER_TYPES,
    convention_of,
    find_convention,
    header_lists,
    header_values,
    list_type,
)
from flexwire.spark.functions.messages import (
    ABSENT,
    CONVENTION,
    CORRUPT,
    ENCODING,
    FIELDS,
    MODE,
    OF_INFLATION,
    PREFIX,
    read_options,
)
from flexwire.spark.functions.variant import VARIANT
from flexwire.tasks import spare_modules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from flexwire.records.conventions import Convention
    from flexwire.schema.message_schemas import MessageLike
    from flexwire.schema.spec import MessageSpec
    from flexwire.spark.functions.messages import FunctionOptions, FunctionSettings

    Task = Callable[..., pa.Array]


_OLDEST = (4, 1)


def arrow_function(name: str, task: Task, kind: pa.DataType) -> Callable[..., Column]:
    """Return a column function that workers run as ``task``, with this process's catalog.

    ``task`` takes an Arrow array for each column, and returns an array of type ``kind``. Raises
    `AnalysisError` on PySpark 4.0, which has no `arrow_udf`.
    """
    check_version(name, pyspark.__version__)
    # This import is inside the function because PySpark 4.0 does not define the name. PySpark's
    # type stubs lack it too.
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined] # noqa: PLC0415 - not in PySpark 4.0

    carried = catalog().packed

    def run(*columns: pa.Array) -> pa.Array:
        spare_modules()
        use_packed_catalog(carried)
        return task(*columns)

    run.__name__ = name
    # PySpark's type stubs require an argument, but PySpark warns about it at run time.
    make: Any = arrow_udf
    function: Callable[..., Column] = make(run, from_arrow_type(kind))
    return function


def check_version(name: str, version: str) -> None:
    """Raise an error if the version of PySpark does not support Arrow functions.

    >>> check_version("from_kafka", "4.0.1")
    Traceback (most recent call last):
    flexwire.errors.AnalysisError: from_kafka needs PySpark 4.1 or later, got 4.0.1
    """
    if tuple(map(int, version.split(".")[:2])) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise AnalysisError(f"{name} needs PySpark {oldest} or later, got {version}")


ColumnOrName: TypeAlias = Column | str
_OF_MESSAGES = (MODE, CORRUPT, ENCODING, ABSENT)
_OF_STRUCTS = (*_OF_MESSAGES, FIELDS)


def from_kafka(
    data: ColumnOrName,
    message: MessageLike,
    version: ColumnOrName | int,
    options: FunctionOptions | None = None,
) -> Column:
    """Decode a binary column of messages into a struct, much as `from_protobuf` does.

    Args:
        data: the bytes of one message in each row, complete and without a header; null results in
            null.
        message: the message's name ("MetadataResponse"), or your own spec. The message is not a
            column, because it determines the type. The type is that of `schema_of_kafka`, the same
            for all versions.
        version: an int for all rows, or a column with the version of each row.
        options: a dict of strings, as in `from_protobuf`:

            - ``mode``: FAILFAST, the default of `from_protobuf`, ends the query at the first
              message that cannot be decoded. PERMISSIVE returns null in all fields for such a
              message, and adds one field to all rows: ``_corrupt_record``, as in `from_json`. The
              field is null in rows that decode. Otherwise it contains the ``reason``, the ``path``
              of the field and the ``offset`` of the byte.
            - ``columnNameOfCorruptRecord``: another name for that field.
            - ``absent``: the value of a field that the row's version lacks, ``null`` (the default)
              or ``default``.
            - ``encoding``: the name, in `flexwire.codec.Encoding`, of an encoding other than
              Kafka's.
            - ``fields``: the fields of the struct, such as ``"throttle_time_ms, topics.name"``; the
              default is all. Leave out the fields that a query does not use: Spark takes several
              times as long to transfer a struct as flexwire takes to decode it.

    Raises `UnknownMessageError` immediately if the message is not in the catalog, or if an int
    ``version`` does not exist. Raises `AnalysisError` on PySpark 4.0. The query carries a copy of
    the current catalog (`use_catalog`). A call that is used in both ``where`` and ``select`` is
    evaluated twice, like any Python function in Spark; docs/spark-functions.md explains how to
    evaluate it once.
    """
    chosen = read_options(options, *_OF_STRUCTS)
    named = messages.portable(message)
    kind = messages.column_type(named, chosen)
    return _apply("from_kafka", messages.decoded, kind, (named, chosen), data, version)


def from_kafka_variant(
    data: ColumnOrName,
    message: ColumnOrName,
    version: ColumnOrName,
    options: FunctionOptions | None = None,
) -> Column:
    """Decode messages, whose names are in a column, into Variants, as `parse_json` does.

    This function works like `from_kafka`, except that ``message`` is a column, and that the type is
    the same for all messages. Fields have the same names as in `from_kafka`. The function
    takes hundreds of times as long as `from_kafka`, because each value is created in Python.
    """
    for column, name in ((data, "data"), (message, "message"), (version, "version")):
        check_column(column, name)
    task = partial(records.message_variants, read_options(options, *_OF_MESSAGES))
    return arrow_function("from_kafka_variant", task, VARIANT)(data, message, version)


def to_kafka(
    data: ColumnOrName,
    message: MessageLike,
    version: ColumnOrName | int,
    options: FunctionOptions | None = None,
) -> Column:
    """Encode a struct column into a binary column of messages, as `to_protobuf` does.

    Args:
        data: structs as `from_kafka` returns them. A field that is not in any requested version can
            be missing or null. A null struct results in null.
        message: the message's name, or your own spec.
        version: an int for all rows, or a column with the version of each row.
        options: ``mode`` FAILFAST, the default, ends the query at the first row that no message can
            hold. PERMISSIVE returns null for such a row. This mode also accepts structs with the
            error field that `from_kafka` adds; ``columnNameOfCorruptRecord`` sets another name for
            this field. ``encoding`` is as in `from_kafka`.
    """
    chosen = read_options(options, MODE, CORRUPT, ENCODING)
    named = messages.portable(message)
    return _apply("to_kafka", messages.encoded, pa.binary(), (named, chosen), data, version)


def schema_of_kafka(message: MessageLike, options: FunctionOptions | None = None) -> StructType:
    """Return the type of `from_kafka` with the same options, as `schema_of_json` does for JSON.

    The result is a type, not a column. The type does not depend on the data, and is known before a
    query runs. In SQL, use its ``simpleString()``.

    >>> schema_of_kafka("ListGroupsRequest").simpleString()[:36]
    'struct<states_filter:array<string>,t'
    """
    chosen = read_options(options, *_OF_STRUCTS)
    kind = messages.column_type(messages.portable(message), chosen)
    return cast("StructType", from_arrow_type(kind))


def _apply(
    name: str,
    work: Any,
    kind: pa.DataType,
    fixed: tuple[str | MessageSpec, FunctionSettings],
    data: ColumnOrName,
    version: ColumnOrName | int,
) -> Column:
    """Apply a function for messages to columns.

    If all rows use the same version, the version is not sent as a column.
    """
    check_column(data, "data")
    if isinstance(version, Column | str):
        return arrow_function(name, partial(work, *fixed), kind)(data, version)
    number = to_version(version)
    messages.check_version(fixed[0], number, fixed[1])
    return arrow_function(name, partial(_run_at_version, work, fixed, number), kind)(data)


def _run_at_version(
    work: Any, fixed: tuple[str | MessageSpec, FunctionSettings], version: int, data: pa.Array
) -> pa.Array:
    return work(*fixed, data, version)


def check_column(column: object, name: str) -> None:
    """Raise an error if a value is neither a column nor the name of a column."""
    if not isinstance(column, Column | str):
        raise refuse(name, "a Column or a column name", column)


def kafka_records(
    data: ColumnOrName,
    columns: Sequence[str] = tuple(RECORD_COLUMNS),
    options: FunctionOptions | None = None,
) -> Column:
    """Decode a binary column of record batches into an array of structs, one for each record.

    Spark's most similar function is `from_json` with a schema of ``array<struct<…>>``. Use
    `inline` to turn the array into rows. The bytes are the ``records`` of a Produce request or
    Fetch response, or a part of a log segment. The bytes can contain a sequence of record batches
    and message sets, with any magic value and compression codec.

    Args:
        data: the bytes of each row; null results in null, and an empty value results in an empty
            array.
        columns: the fields of a record, from `flexwire.columnar.RECORD_COLUMNS` (the default:
            ``offset``, ``timestamp``, ``timestamp_type``, ``key``, ``value``, ``headers``) and
            `flexwire.columnar.BATCH_COLUMNS`. Other fields are not copied.
        options: ``mode`` FAILFAST, the default, ends the query at the first damaged batch. A batch
            that was cut off at the end of a full fetch is omitted. PERMISSIVE returns the other
            records, and after them one element for each damaged or truncated batch. This element
            contains only ``_corrupt_record`` (or ``columnNameOfCorruptRecord``): the ``reason`` and
            the ``offset`` of the byte. For records, this field is null. ``maxInflated`` (``128m``
            by default) bounds the decompressed bytes of a batch, and ``maxRatio`` bounds them as a
            multiple of the batch's own size. A batch that exceeds either bound counts as damaged.
    """
    check_column(data, "data")
    chosen = read_options(options, MODE, CORRUPT, *OF_INFLATION)
    names = column_names(columns)
    if len({*names}) < len(names):
        raise refuse("columns", "each name once", columns)
    task = partial(records.record_lists, names, chosen)
    return arrow_function("kafka_records", task, records.list_type(names, chosen))(data)


def kafka_headers(
    headers: ColumnOrName,
    convention: str | Convention,
    options: FunctionOptions | None = None,
) -> Column:
    """Read the values of record headers by a convention, as ``array<struct<key, value: variant>>``.

    Spark's most similar function is `parse_json`. The type of a value is known only when the value
    is read, so it is a Variant. ``value::bigint`` or `variant_get` returns the value. Order and
    duplicates are preserved.

    Args:
        headers: the ``headers`` of Spark's own Kafka source (``includeHeaders``), or of
            `kafka_records`; null, which is Spark's value for no headers, results in null.
        convention: the name of a convention in `flexwire.records.conventions` (``kip-82``,
            ``utf-8``, ``connect``, ``spring-json`` …), or your own convention, such as
            ``FixedWidth({"n": "int"})``.
        options: ``mode`` FAILFAST, the default, ends the query at the first value that does not
            fit. PERMISSIVE returns null for such a value, and adds one field to all headers:
            ``_corrupt_record`` (or ``columnNameOfCorruptRecord``) with the ``reason``.
    """
    check_column(headers, "headers")
    chosen = read_options(options, MODE, CORRUPT)
    task = partial(header_lists, find_convention(convention), chosen)
    return arrow_function("kafka_headers", task, list_type(chosen))(headers)


def header(
    headers: ColumnOrName,
    key: str,
    type: str,  # noqa: A002 - KIP-82 and Spark use this word
    options: FunctionOptions | None = None,
) -> Column:
    """Read the last record header with a given key as a given type, much as `get_json_object` does.

    Returns null if a row has no such header, or if the header's value is null. Other headers are
    not read.

    Args:
        headers: as in `kafka_headers`.
        key: the key, which is not a column.
        type: a type of KIP-82's table: boolean, byte, short, int, long, float, double, string,
            char, or ``byte[]`` (also called binary).
        options: ``convention`` says how values are written (default: ``kip-82``). ``mode``
            FAILFAST, the default, ends the query at the first value that does not fit, or that
            cannot be converted to the type without loss: a short is a long, the long 5 is a short,
            and "5" is neither. PERMISSIVE returns null for such a value.
    """
    check_column(headers, "headers")
    chosen = read_options(options, MODE, CONVENTION)
    name = to_choice(type, "type", tuple(HEADER_TYPES))
    convention = convention_of(chosen.convention, to_text(key, "key"), name)
    task = partial(header_values, convention, key, name, chosen)
    return arrow_function("header", task, HEADER_TYPES[name])(headers)


def kafka_frame(
    data: ColumnOrName,
    api_key: ColumnOrName | None = None,
    api_version: ColumnOrName | None = None,
    options: FunctionOptions | None = None,
) -> Column:
    """Read whole frames: the facts in the header, and the body with its message and version.

    Spark has no similar function. Decode the bodies with `from_kafka`, one message at a time:
    ``from_kafka("frame.body", "MetadataRequest", "frame.body_version")`` on the rows with that
    ``frame.message``.

    Args:
        data: frames with their int32 length; null results in null.
        api_key: for responses, which do not contain their API key: the api key of the request.
        api_version: for responses: the version of the request.
        options: ``mode`` FAILFAST, the default, ends the query at the first value that is not a
            frame. PERMISSIVE returns null fields for such a value, and adds one field to all rows:
            ``_corrupt_record`` (or ``columnNameOfCorruptRecord``). Set ``lengthPrefix`` to
            ``false`` for payloads without their length, as in the ``frames`` table of an analysis.
    """
    chosen = read_options(options, MODE, CORRUPT, PREFIX)
    columns: list[tuple[Any, str]] = [(data, "data")]
    if api_key is not None or api_version is not None:
        columns += [(api_key, "api_key"), (api_version, "api_version")]
    for column, name in columns:
        check_column(column, name)
    make = arrow_function(
        "kafka_frame", partial(messages.frames, chosen), messages.frame_type(chosen)
    )
    return make(*(column for column, _ in columns))


def register_functions(
    spark: SparkSession,
    messages: Iterable[MessageLike] = (),
    options: FunctionOptions | None = None,
) -> list[str]:
    """Register the column functions for SQL in a session, and return their names.

    The type of a Python function cannot depend on an argument. There is therefore one typed
    function for each of ``messages``, named after it: ``kafka_metadata_response(value, 12)`` for
    ``MetadataResponse``, with the type of `schema_of_kafka`. The following functions accept any
    message:

    - ``from_kafka_variant(value, 'MetadataResponse', 12)`` returns a Variant;
    - ``to_kafka(struct, 'MetadataResponse', 12)``, ``kafka_records(value)``, ``kafka_frame(value)``
      and, for responses, ``kafka_frame(value, api_key, api_version)``;
    - ``kafka_headers(headers, 'kip-82')``.

    ``options`` apply to all functions that this call registers; ``fields`` apply to each of
    ``messages``. The current catalog is used. Raises `AnalysisError` on PySpark 4.0, which does not
    support such functions.
    """
    chosen = read_options(options, MODE, CORRUPT, ENCODING, ABSENT, PREFIX, FIELDS, *OF_INFLATION)
    functions = {
        **dict(
            typed_function(message, chosen)
            for message in to_list(messages, "messages", "a list of messages")
        ),
        **_functions_of_any_message(chosen),
    }
    for name, function in functions.items():
        spark.udf.register(name, function)
    return list(functions)


def typed_function(message: MessageLike, options: FunctionSettings) -> tuple[str, Any]:
    """Return the function for one message, and its name in SQL."""
    named = messages.portable(message)
    name = f"kafka_{snake_case(named if isinstance(named, str) else named.name)}"
    kind = messages.column_type(named, options)
    return name, arrow_function(name, partial(messages.decoded, named, options), kind)


def _functions_of_any_message(options: FunctionSettings) -> dict[str, Any]:
    columns = tuple(RECORD_COLUMNS)
    of: dict[str, tuple[Any, pa.DataType]] = {
        "from_kafka_variant": (records.message_variants, VARIANT),
        "to_kafka": (records.encoded_messages, pa.binary()),
        "kafka_records": (
            partial(records.record_lists, columns),
            records.list_type(columns, options),
        ),
        "kafka_headers": (records.header_lists, list_type(options)),
        "kafka_frame": (messages.frames, messages.frame_type(options)),
    }
    return {
        name: arrow_function(name, partial(work, options), kind)
        for name, (work, kind) in of.items()
    }
