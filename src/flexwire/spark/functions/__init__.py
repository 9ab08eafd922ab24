"""Spark functions for columns that contain Kafka's bytes, like `from_avro` and `from_protobuf`.

Each function takes columns of a DataFrame and returns a column, in classic Spark, on Spark Connect
and in streams. Other packages do the work, in Arrow (`messages`, `records`, `headers`, `frames`).
This package turns that code into Spark functions. The functions need PySpark 4.1 or later, except
the functions for the names of error codes, which are built from Spark's own expressions.

`register_functions` makes the functions available in SQL.
"""

from __future__ import annotations

from flexwire.answers.asking.messages import kafka_error_is_retriable, kafka_error_name
from flexwire.spark.functions.columns import (
    from_kafka,
    from_kafka_variant,
    header,
    kafka_frame,
    kafka_headers,
    kafka_records,
    register_functions,
    schema_of_kafka,
    to_kafka,
)

__all__ = [
    "from_kafka",
    "from_kafka_variant",
    "header",
    "kafka_error_is_retriable",
    "kafka_error_name",
    "kafka_frame",
    "kafka_headers",
    "kafka_records",
    "register_functions",
    "schema_of_kafka",
    "to_kafka",
]
