"""The column functions in SQL: `register_functions`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flexwire.arguments import to_list
from flexwire.columnar import RECORD_COLUMNS
from flexwire.schema.spec import snake_case
from flexwire.spark.functions import dynamic, frames, headers, messages, records
from flexwire.spark.functions.options import (
    ABSENT,
    CORRUPT,
    ENCODING,
    FIELDS,
    MODE,
    OF_INFLATION,
    PREFIX,
    read_options,
)
from flexwire.spark.functions.udfs import arrow_function
from flexwire.spark.functions.variant import VARIANT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from flexwire.schema.served import MessageLike
    from flexwire.spark.functions.options import FunctionOptions, Options


def register_functions(
    spark: SparkSession,
    messages: Iterable[MessageLike] = (),
    options: FunctionOptions | None = None,
) -> list[str]:
    """Register the column functions for SQL in a session, and give their names.

    A Python function cannot take its type from an argument. So there is one typed function for each
    of ``messages``, named after it: ``kafka_metadata_response(value, 12)`` for
    ``MetadataResponse``, with the type of `schema_of_kafka`. These take any message:

    - ``from_kafka_variant(value, 'MetadataResponse', 12)`` gives a Variant;
    - ``to_kafka(struct, 'MetadataResponse', 12)``, ``kafka_records(value)``, ``kafka_frame(value)``
      and, for responses, ``kafka_frame(value, api_key, api_version)``;
    - ``kafka_headers(headers, 'kip-82')``.

    ``options`` are those of the functions, for all that are registered by this call; ``fields`` are
    those of each of ``messages``. The catalog is
    that of this moment. Raises `AnalysisError` on PySpark 4.0, which has no such functions.
    """
    chosen = read_options(options, MODE, CORRUPT, ENCODING, ABSENT, PREFIX, FIELDS, *OF_INFLATION)
    made = {
        **dict(
            typed_function(one, chosen)
            for one in to_list(messages, "messages", "a list of messages")
        ),
        **_of_any_message(chosen),
    }
    for name, function in made.items():
        spark.udf.register(name, function)
    return list(made)


def typed_function(message: MessageLike, options: Options) -> tuple[str, Any]:
    """Give the function of one message, and its name in SQL."""
    named = messages.portable(message)
    name = f"kafka_{snake_case(named if isinstance(named, str) else named.name)}"
    kind = messages.column_type(named, options)
    return name, arrow_function(name, partial(messages.decoded, named, options), kind)


def _of_any_message(options: Options) -> dict[str, Any]:
    columns = tuple(RECORD_COLUMNS)
    of: dict[str, tuple[Any, pa.DataType]] = {
        "from_kafka_variant": (dynamic.message_variants, VARIANT),
        "to_kafka": (dynamic.encoded_messages, pa.binary()),
        "kafka_records": (
            partial(records.record_lists, columns),
            records.list_type(columns, options),
        ),
        "kafka_headers": (dynamic.header_lists, headers.list_type(options)),
        "kafka_frame": (frames.frames, frames.frame_type(options)),
    }
    return {
        name: arrow_function(name, partial(work, options), kind)
        for name, (work, kind) in of.items()
    }
