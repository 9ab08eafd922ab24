"""What each encoding of KIP-482 and KIP-636 would make of the messages that were sent."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.cost.columns import ERROR_TAGS, FRAME_SIZES, NEEDED, frame_sizes
from flexwire.report.answer_facts import Picture, ShownColumn
from flexwire.schema.catalog import catalog
from flexwire.spark.answers.answer import Answer
from flexwire.spark.tasks import map_in_arrow
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column as SparkColumn

    from flexwire.spark.answers.reading import AnalysisTables

_ENCODINGS: Final = {
    "fixed": "without compact types and tagged fields, as before KIP-482",
    "flexible": "by KIP-482, in every version",
    "interleaved": "by KIP-482's second draft, whose tags and lengths share their bits",
    "optional_buffers": "by KIP-482's first draft, with a buffer of optional fields first",
    ERROR_TAGS: "with error codes and messages as tagged fields, KIP-636",
}
_AS_SENT: Final = "kafka"
# Of each octave of frames after these, as 256 to 511, one in 32 is measured, in a block from its
# start and one from its middle on: Parquet is read only where they are, and a connection is
# measured from its start to its end.
_WHOLE_UNTIL: Final = 256
_ONE_OF: Final = 32
_LONGEST: Final = 2**31
_GROUP: Final = ("message", "body_version")
_SIGMAS: Final = 1.96

COLUMNS: tuple[Column, ...] = (
    Column("api_name", pa.string(), 'the API: "Fetch"'),
    Column("message", pa.string(), 'its request or response: "FetchResponse"'),
    Column("version", pa.int32(), "the version of its body"),
    Column("messages", pa.int64(), "how many were decoded"),
    Column("measured", pa.int64(), "how many of them were measured: not those with withheld "
           "credentials, and of long connections one in 32"),
    Column("sent_bytes", pa.int64(), "the bytes of all messages as they were sent, with header "
           "and length"),
    *(
        Column(f"{name}_bytes", pa.int64(), f"what they would take {meaning}; estimated from "
               "those measured, and what the encoding cannot hold counts as sent",
               "where none was measured")
        for name, meaning in _ENCODINGS.items()
    ),
    Column("margin_bytes", pa.int64(), "how far the least certain of these five may be off, in 95 "
           "of 100 samples; 0 where all were measured", "where none was measured"),
    Column("error_share", pa.float64(), "the share of messages in which an error code is not 0",
           "where the message has none, and where none was measured"),
    Column("clients", pa.int64(), "how many client ids the messages are of"),
    *(
        Column(f"{name}_gain_share", pa.float64(), "the share of measured clients whose messages "
               f"would be smaller {meaning}", "where none was measured")
        for name, meaning in _ENCODINGS.items()
    ),
)  # fmt: skip


def sizes(tables: AnalysisTables, *, whole: bool = False) -> DataFrame:
    """A row for each message and version: its bytes as sent, and in each other encoding.

    Messages, clients and bytes as sent are counted. Other encodings are measured in columns, byte
    for byte what flexwire would write, on the first 256 frames of each connection and one in 32 of
    the others, in blocks over its whole course; ``whole`` measures all. The estimate has the share
    of bytes in the measured messages; ``margin_bytes`` takes these for independent, and so is too
    small where neighbours are alike. It does not know messages that did not decode, that broke
    their spec, and those in which credentials are withheld.
    """
    counted = _counted(tables.frames)
    sampled = [_measured(*each, whole=whole) for each in _message_tables(tables)]
    if not sampled:
        return _answer(counted, counted.select(*_GROUP).where("false"))
    clients = _by_client(reduce(DataFrame.unionByName, sampled))
    return _answer(counted, clients)


def _counted(frames: DataFrame) -> DataFrame:
    """What all frames of a message and version come to."""
    return (
        frames.where("outcome = 'decoded' and body_version is not null")
        .groupBy("api_name", *_GROUP, "client_id")
        .agg(F.count("*").alias("messages"), F.sum("size").alias("sent_bytes"))
        .groupBy("api_name", *_GROUP)
        .agg(
            F.sum("messages").alias("messages"),
            F.sum("sent_bytes").alias("sent_bytes"),
            F.count("*").alias("clients"),
        )
    )


def _message_tables(tables: AnalysisTables) -> Iterator[tuple[str, DataFrame]]:
    for name in catalog().names():
        table = tables.message(name)
        if table is not None:
            yield name, table


def _measured(name: str, table: DataFrame, *, whole: bool) -> DataFrame:
    """The frames of one message that are measured, and for how many each of them stands."""
    rows = table.where("error is null and withheld_credentials = 0 and body is not null")
    if whole:
        weight: SparkColumn = F.lit(1.0)
    else:
        rows = rows.where(blocks())
        weight = F.when(F.col("frame_index") < _WHOLE_UNTIL, 1.0).otherwise(float(_ONE_OF))
    return map_in_arrow(
        rows.select(*NEEDED, weight.alias("weight")), partial(_measure, name), _SAMPLE
    )


def blocks() -> str:
    """The blocks of frames that are measured, which Spark looks up in what Parquet files say."""
    ranges = [(0, _WHOLE_UNTIL - 1)]
    octave = _WHOLE_UNTIL
    while octave < _LONGEST:
        half = octave // 2
        ranges += [(at, at + half // _ONE_OF - 1) for at in (octave, octave + half)]
        octave *= 2
    return " or ".join(f"frame_index between {first} and {last}" for first, last in ranges)


_SAMPLE = pa.schema(
    [
        ("message", pa.string()),
        ("body_version", pa.int32()),
        ("client_id", pa.string()),
        ("weight", pa.float64()),
        (_AS_SENT, pa.int64()),
        *((name, pa.int64()) for name in _ENCODINGS),
        ("has_error", pa.bool_()),
    ]
)


def _measure(name: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        # Of a batch that Spark gives without rows there is nothing to say.
        if not batch.num_rows:
            continue
        found = frame_sizes(name, batch)
        held: dict[str, Any] = {one: batch[one] for one in ("body_version", "client_id", "weight")}
        held["message"] = pa.repeat(name, batch.num_rows)
        held |= {one: found[one] for one in FRAME_SIZES.names if one in _SAMPLE.names}
        for one in _ENCODINGS:
            held[one] = pc.coalesce(held[one], held[_AS_SENT])
        rows = pa.RecordBatch.from_arrays([held[one] for one in _SAMPLE.names], schema=_SAMPLE)
        yield rows.filter(rows[_AS_SENT].is_valid())


def _by_client(sampled: DataFrame) -> DataFrame:
    """Sums of each client, weighted, and what their spread is made from."""
    weight, rest = F.col("weight"), F.col("weight") * (F.col("weight") - 1)
    sent = F.col(_AS_SENT)
    sums = [
        F.count("*").alias("measured"),
        F.sum(weight).alias("standing_for"),
        F.sum(weight * F.col("has_error").cast("double")).alias("with_error"),
        F.sum(F.when(F.col("has_error").isNotNull(), weight)).alias("could_have_error"),
        F.sum(weight * sent).alias(_AS_SENT),
        F.sum(rest * sent * sent).alias("sent_spread"),
    ]
    for name in _ENCODINGS:
        size = F.col(name)
        sums += [
            F.sum(weight * size).alias(name),
            F.sum(rest * size * size).alias(f"{name}_spread"),
            F.sum(rest * size * sent).alias(f"{name}_common"),
        ]
    return sampled.groupBy(*_GROUP, "client_id").agg(*sums)


def _answer(counted: DataFrame, clients: DataFrame) -> DataFrame:
    names = [one for one in clients.columns if one not in (*_GROUP, "client_id")]
    if names:
        gains = [F.avg((F.col(one) < F.col(_AS_SENT)).cast("double")) for one in _ENCODINGS]
        measured = clients.groupBy(*_GROUP).agg(
            *(F.sum(one).alias(one) for one in names),
            *(gain.alias(f"{one}_gain_share") for one, gain in zip(_ENCODINGS, gains, strict=True)),
        )
        rows = counted.join(F.broadcast(measured), [*_GROUP], "left")
        found = {f"{one}_bytes": _share(one) * F.col("sent_bytes") for one in _ENCODINGS}
        found["margin_bytes"] = F.greatest(*map(_margin, _ENCODINGS))
        found = {name: F.round(value).cast("bigint") for name, value in found.items()}
        found["error_share"] = F.col("with_error") / F.col("could_have_error")
        rows = rows.withColumns(found).fillna(0, ["measured"])
    else:
        rows = counted.withColumn("measured", F.lit(0))
    rows = rows.withColumnRenamed("body_version", "version")
    kinds = {"string": "string", "int32": "int", "int64": "bigint", "double": "double"}
    return rows.select(
        *(
            (F.col(one.name) if one.name in rows.columns else F.lit(None))
            .cast(kinds[str(one.type)])
            .alias(one.name)
            for one in COLUMNS
        )
    )


def _share(name: str) -> SparkColumn:
    """How large the measured messages are in this encoding, beside what they are as sent."""
    return F.col(name) / F.col(_AS_SENT)


def _margin(name: str) -> SparkColumn:
    # The variance of an estimate by a ratio, from the residuals' squares.
    share = _share(name)
    residuals = (
        F.col(f"{name}_spread")
        - 2 * share * F.col(f"{name}_common")
        + share * share * F.col("sent_spread")
    )
    part = F.col("sent_bytes") / F.col(_AS_SENT)
    return _SIGMAS * part * F.sqrt(F.greatest(residuals, F.lit(0.0)))


ANSWER = Answer(
    name="sizes",
    question="What would other encodings save?",
    meaning="The bytes of each message and version as sent, and in every encoding of KIP-482 and "
    "KIP-636; what was not measured is estimated, up to the margin.",
    advice="Look at large rows: where KIP-482's bytes are well below those sent, a client that "
    "speaks a flexible version saves them. flexwire schema cost says which fields they are.",
    row="message and version",
    columns=COLUMNS,
    order=("-sent_bytes", "message", "version"),
    shown=(
        ShownColumn("message", "Message", is_about=True),
        ShownColumn("version", "Version", "count", is_about=True),
        ShownColumn("messages", "Messages", "count"),
        ShownColumn("sent_bytes", "As sent", "bytes"),
        ShownColumn("fixed_bytes", "Before KIP-482", "bytes"),
        ShownColumn("flexible_bytes", "KIP-482", "bytes"),
        ShownColumn("interleaved_bytes", "2nd draft", "bytes"),
        ShownColumn("optional_buffers_bytes", "1st draft", "bytes"),
        ShownColumn(f"{ERROR_TAGS}_bytes", "KIP-636", "bytes"),
        ShownColumn("margin_bytes", "±", "bytes"),
        ShownColumn("error_share", "With an error", "share"),
        ShownColumn(f"{ERROR_TAGS}_gain_share", "Clients that gain by KIP-636", "share"),
    ),
    ask=sizes,
    picture=Picture(
        "Bytes of all messages, in each encoding",
        "sent_bytes",
        across=tuple(f"{name}_bytes" for name in _ENCODINGS),
    ),
)
