"""The sizes of sent messages in each encoding of KIP-482 and KIP-636."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, DaySums
from flexwire.answers.asking.day_sums import DAY, all_of, day_of_time, day_task
from flexwire.facts.answers import AnswerPicture
from flexwire.measures.conditions import UNBROKEN
from flexwire.schema.catalog import catalog
from flexwire.specs.cost.columns import (
    AS_SENT,
    BLOCKS,
    ERROR_TAGS,
    READ,
    SAMPLE,
    WITHOUT_ERROR_TAGS,
    measure,
)
from flexwire.tables.output import MESSAGES
from flexwire.tables.schema import Column
from flexwire.tasks import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_HEADINGS: Final = {
    "fixed": "Before KIP-482",
    "flexible": "KIP-482",
    "interleaved": "2nd draft",
    "optional_buffers": "1st draft",
    ERROR_TAGS: "KIP-636",
}
_ENCODINGS: Final = {
    "fixed": "without compact types and tagged fields, as before KIP-482",
    "flexible": "with KIP-482 in every version",
    "interleaved": "as in the second draft of KIP-482, which packs a tag and a length into one "
    "number",
    "optional_buffers": "as in the first draft of KIP-482, in which a buffer with the optional "
    "fields comes first",
    ERROR_TAGS: "with error codes and error messages as tagged fields (KIP-636), which makes the "
    "request and the response of an API with errors flexible",
}
# The encoding with which each encoding is compared in order to compute the gain.
_BEFORE: Final = dict.fromkeys(_ENCODINGS, AS_SENT) | {ERROR_TAGS: WITHOUT_ERROR_TAGS}
_GAINS: Final = {
    **{name: f"than as sent if encoded {meaning}" for name, meaning in _ENCODINGS.items()},
    ERROR_TAGS: "with error codes and error messages as tagged fields than with KIP-482 alone; "
    "for these clients, KIP-636 itself saves bytes",
}
_GROUP: Final = ("message", "body_version")
_SIGMAS: Final = 1.96
# The sums for each client over its measured messages.
_MEASURED: Final = (
    *("measured", "standing_for", "with_error", "could_have_error"),
    *(AS_SENT, "sent_spread", WITHOUT_ERROR_TAGS),
    *(f"{name}{what}" for name in _ENCODINGS for what in ("", "_spread", "_common")),
)
_SUMS: Final = pa.schema(
    [
        (DAY, pa.date32()),
        ("is_sample", pa.bool_()),
        ("api_name", pa.string()),
        ("message", pa.string()),
        ("body_version", pa.int32()),
        ("client_id", pa.string()),
        ("messages", pa.int64()),
        ("sent_bytes", pa.int64()),
        *((name, pa.int64() if name == "measured" else pa.float64()) for name in _MEASURED),
    ]
)

COLUMNS: tuple[Column, ...] = (
    Column("api_name", pa.string(), 'the API, such as "Fetch"'),
    Column("message", pa.string(), 'the name of the request or response, such as "FetchResponse"',
           heading="Message", is_about=True),
    Column("version", pa.int32(), "the version of the message", heading="Version", is_about=True),
    Column("messages", pa.int64(), "how many messages were decoded", heading="Messages"),
    Column("measured", pa.int64(),
           "the number of measured messages; on long connections only one in 32 messages is "
           "measured, and messages with withheld credentials never are"),
    Column("sent_bytes", pa.int64(), "the total size of all messages as sent, in "
           "bytes, including headers and length fields",
           heading="As sent"),
    *(
        Column(f"{name}_bytes", pa.int64(), "the total size in bytes that the messages would have "
               f"if encoded {meaning}; estimated from the measured messages; a message that the "
               "encoding cannot represent counts with its size as sent",
               "if no message was measured", heading=_HEADINGS[name])
        for name, meaning in _ENCODINGS.items()
    ),
    Column("margin_bytes", pa.int64(),
           "the margin of error of the least certain of these five estimates, at a confidence "
           "level of 95 %; 0 if all messages were measured", "if no message was measured",
           heading="±"),
    Column("error_share", pa.float64(), "the share of messages in which an error code is not 0",
           "if the message has no error code, or if no message was measured",
           heading="With an error"),
    Column("clients", pa.int64(), "the number of client ids that sent or received the messages"),
    *(
        Column(f"{name}_gain_share", pa.float64(), "the share of measured clients whose messages "
               f"would be smaller {meaning}", "if no message was measured",
               heading="Clients that gain from KIP-636" if name == ERROR_TAGS else "")
        for name, meaning in _GAINS.items()
    ),
)  # fmt: skip


def sizes(tables: AnalysisTables, *, whole: bool = False) -> DataFrame:
    """Return each message and version with its size as sent and its size in each other encoding.

    The numbers of messages and clients, and the sizes as sent, are exact. For a measured message,
    the size in another encoding is the exact number of bytes that flexwire would write. The sample
    contains the first 256 frames of each connection, and one in 32 of the other frames, in blocks
    spread over the whole connection. If ``whole`` is true, all frames are measured. To estimate a
    size, the size as sent is multiplied by the size ratio of the measured messages.
    ``margin_bytes`` assumes that measured messages are independent. The margin is too small if
    neighboring messages are similar. Some messages are not included: messages that could not be
    decoded or that violated their spec, messages from which credentials are withheld, and all
    messages in request logs, which do not contain frame sizes.
    """
    return _total(_part(tables, whole=whole), tables)


def _part(tables: AnalysisTables, *, whole: bool = False) -> DataFrame:
    """Return sums by day, message and client, both over all frames and over the measured frames."""
    columns, task, schema = day_task(partial(measure, whole=whole), READ, SAMPLE)
    sampled = tables.of_messages(columns, task, schema, None if whole else BLOCKS)
    parts = [_counted(tables.frames)]
    if sampled is not None:
        parts.append(_by_client(sampled))
    kinds = {field.name: field.dataType for field in spark_schema(_SUMS)}
    return all_of(
        [
            part.select(
                *(
                    F.col(name) if name in part.columns else F.lit(None).cast(kind).alias(name)
                    for name, kind in kinds.items()
                )
            )
            for part in parts
        ]
    )


def _total(parts: DataFrame, _tables: AnalysisTables) -> DataFrame:
    """Return the answer's rows, computed from the sums of all days."""
    by_client = (*_GROUP, "client_id")
    counted = (
        parts.where("not is_sample")
        .groupBy("api_name", *by_client)
        .agg(F.sum("messages").alias("messages"), F.sum("sent_bytes").alias("sent_bytes"))
        .groupBy("api_name", *_GROUP)
        .agg(
            F.sum("messages").alias("messages"),
            F.sum("sent_bytes").alias("sent_bytes"),
            F.count("*").alias("clients"),
        )
    )
    clients = (
        parts.where("is_sample")
        .groupBy(*by_client)
        .agg(*(F.sum(name).alias(name) for name in _MEASURED))
    )
    return _answer(counted, clients)


def _counted(frames: DataFrame) -> DataFrame:
    """Return the counts of all frames by day, message, version and client."""
    return (
        frames.where(UNBROKEN.sql)
        .where("body_version is not null and size is not null")
        .groupBy(day_of_time().alias(DAY), "api_name", *_GROUP, "client_id")
        .agg(F.count("*").alias("messages"), F.sum("size").alias("sent_bytes"))
        .withColumn("is_sample", F.lit(False))
    )


def _by_client(sampled: DataFrame) -> DataFrame:
    """Return the weighted sums for each day and client, and the terms of their variance."""
    weight, rest = F.col("weight"), F.col("weight") * (F.col("weight") - 1)
    sent = F.col(AS_SENT)
    sums = [
        F.count("*").alias("measured"),
        F.sum(weight).alias("standing_for"),
        F.sum(weight * F.col("has_error").cast("double")).alias("with_error"),
        F.sum(F.when(F.col("has_error").isNotNull(), weight)).alias("could_have_error"),
        F.sum(weight * sent).alias(AS_SENT),
        F.sum(rest * sent * sent).alias("sent_spread"),
    ]
    sums.append(F.sum(weight * F.col(WITHOUT_ERROR_TAGS)).alias(WITHOUT_ERROR_TAGS))
    for name in _ENCODINGS:
        size = F.col(name)
        sums += [
            F.sum(weight * size).alias(name),
            F.sum(rest * size * size).alias(f"{name}_spread"),
            F.sum(rest * size * sent).alias(f"{name}_common"),
        ]
    by_day = sampled.groupBy(DAY, *_GROUP, "client_id").agg(*sums)
    return by_day.withColumn("is_sample", F.lit(True))


def _answer(counted: DataFrame, clients: DataFrame) -> DataFrame:
    gains = [
        F.avg((F.col(column) < F.col(before)).cast("double")) for column, before in _BEFORE.items()
    ]
    measured = clients.groupBy(*_GROUP).agg(
        *(F.sum(column).alias(column) for column in _MEASURED),
        *(
            gain.alias(f"{column}_gain_share")
            for column, gain in zip(_ENCODINGS, gains, strict=True)
        ),
    )
    rows = counted.join(F.broadcast(measured), [*_GROUP], "left")
    shares = {
        f"{encoding}_bytes": _share(encoding) * F.col("sent_bytes") for encoding in _ENCODINGS
    }
    shares["margin_bytes"] = F.greatest(*map(_margin, _ENCODINGS))
    shares = {name: F.round(value).cast("bigint") for name, value in shares.items()}
    shares["error_share"] = F.col("with_error") / F.col("could_have_error")
    rows = rows.withColumns(shares).fillna(0, ["measured"])
    rows = rows.withColumnRenamed("body_version", "version")
    kinds = {"string": "string", "int32": "int", "int64": "bigint", "double": "double"}
    return rows.select(
        *(F.col(column.name).cast(kinds[str(column.type)]).alias(column.name) for column in COLUMNS)
    )


def _share(name: str) -> SparkColumn:
    """Return the measured messages' size in this encoding, as a share of their size as sent."""
    return F.col(name) / F.col(AS_SENT)


def _margin(name: str) -> SparkColumn:
    # The variance of a ratio estimate, computed from the squares of the residuals.
    share = _share(name)
    residuals = (
        F.col(f"{name}_spread")
        - 2 * share * F.col(f"{name}_common")
        + share * share * F.col("sent_spread")
    )
    part = F.col("sent_bytes") / F.col(AS_SENT)
    return _SIGMAS * part * F.sqrt(F.greatest(residuals, F.lit(0.0)))


ANSWER = Answer(
    name="sizes",
    place=90,
    question="What would other encodings save?",
    meaning="The size of each message and version as sent, and in every encoding of KIP-482 and "
    "KIP-636. A message that KIP-636 changes also becomes flexible. The gain from KIP-636 alone is "
    "therefore the difference between the KIP-636 and KIP-482 columns. The sizes of messages "
    "that were not measured are estimated, within the margin of error.",
    advice=(
        "Begin with the rows whose messages have the largest total size. If a message takes far "
        "fewer bytes with KIP-482 than as sent, a client that uses a flexible version saves the "
        "difference. 'flexwire schema cost' shows which fields cause the difference."
    ),
    row="a combination of a message and a version",
    columns=COLUMNS,
    order=("-sent_bytes", "message", "version"),
    ask=sizes,
    picture=AnswerPicture(
        "Size of the messages in this table, in each encoding",
        "sent_bytes",
        across=tuple(f"{name}_bytes" for name in _ENCODINGS),
    ),
    sums=DaySums(
        version=1,
        tables=lambda: ["frames", *(f"{MESSAGES}/{name}" for name in catalog().names())],
        columns=_SUMS,
        part=_part,
        total=_total,
    ),
)
