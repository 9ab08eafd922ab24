"""Spark uses the ``kafka-log`` format, whether found by its name or registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import types as T  # noqa: N812 - as PySpark's own examples call it
from pyspark.sql.datasource import DataSourceReader

from flexwire.errors import ArgumentError
from flexwire.spark import register
from tests.capture.log_vectors import BASE, write
from tests.capture.made_logs import TIME, MadeSegment, all_records, plain, random_log, write_log

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

# The schema of Spark's own Kafka source with includeHeaders.
KAFKA = T.StructType(
    [
        T.StructField("key", T.BinaryType()),
        T.StructField("value", T.BinaryType()),
        T.StructField("topic", T.StringType()),
        T.StructField("partition", T.IntegerType()),
        T.StructField("offset", T.LongType()),
        T.StructField("timestamp", T.TimestampType()),
        T.StructField("timestampType", T.IntegerType()),
        T.StructField(
            "headers",
            T.ArrayType(
                T.StructType(
                    [T.StructField("key", T.StringType()), T.StructField("value", T.BinaryType())]
                )
            ),
        ),
    ]
)


def read(spark: SparkSession, path: Path | str, **options: str) -> DataFrame:
    return spark.read.format("kafka-log").options(**options).load(str(path))


def offsets(rows: DataFrame) -> list[int]:
    return [row.offset for row in rows.collect()]


def refusal(read_it: Any) -> str:
    with pytest.raises(PySparkException) as caught:
        read_it()
    return str(caught.value)


@pytest.mark.long
def test_spark_finds_the_format_and_has_the_columns_of_its_kafka_source(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = write(tmp_path, f"orders-lz4-0/{BASE}.log").parent
    rows = read(spark, path, includeHeaders="true")
    assert rows.schema == KAFKA
    found = rows.collect()
    assert [row.offset for row in found] == list(range(42))
    assert (found[0].topic, found[0].partition, found[0].timestampType) == ("orders-lz4", 0, 0)
    assert found[0].headers[0] == ("trace", b"a0")
    assert found[1].headers is None
    assert read(spark, path).schema.names == KAFKA.names[:-1]
    chosen = spark.read.format("kafka-log").schema("offset bigint, batch_position bigint")
    assert chosen.load(str(path)).where("batch_position > 0").first() == (11, 358)
    spark.sql(f"create temporary view log using `kafka-log` options (path '{path}')")
    assert spark.sql("select count(*), max(offset) from log").first() == (42, 41)


@pytest.mark.slow
@pytest.mark.cluster  # a quarter of a minute
def test_filters_narrow_what_is_read_where_they_were_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = random_log(1)
    for name in ("a-0", "a-1", "b-0"):
        write_log(tmp_path / name, made)
    session = spark.newSession()
    register(session)
    assert read(session, tmp_path).count() == 3 * len(all_records(made))
    if not hasattr(DataSourceReader, "pushFilters"):
        with pytest.raises(ArgumentError, match=r"push_filters needs PySpark 4\.1 or later"):
            register(session, push_filters=True)
        return
    register(session, push_filters=True)
    rows, again = (read(session, tmp_path, maxPartitionBytes="8k") for _ in range(2))
    narrow = rows.where("topic = 'a' and partition in (1, 7) and offset between 10 and 20")
    late = TIME + 10 * made[-1].base
    narrow = narrow.union(again.where(f"partition = 0 and timestamp >= timestamp_millis({late})"))
    expected = [(one.offset, one.timestamp) for one in all_records(made)]
    found = [(row.topic, row.partition, row.offset) for row in narrow.collect()]
    assert sorted(found) == [
        *(("a", 0, offset) for offset, timestamp in expected if timestamp >= late),
        *(("a", 1, offset) for offset, _ in expected if 10 <= offset <= 20),
        *(("b", 0, offset) for offset, timestamp in expected if timestamp >= late),
    ]
    # This is why the option is off by default: Spark reads a DataFrame with the filter of an
    # earlier query. If this assertion fails, Spark has fixed the bug.
    assert 0 < rows.count() < len(expected)
    register(session)
    rows = read(session, tmp_path, maxPartitionBytes="8k")
    assert rows.where("partition = 1").count() == len(expected)
    assert rows.count() == 3 * len(expected)


@pytest.mark.long
def test_damage_fails_a_query_or_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, f"flipped-0/{BASE}.log")
    torn = MadeSegment(0)
    torn.add(plain(0, 3))
    torn.data += torn.data[:-1]
    torn.write(tmp_path / "torn-0")
    told = refusal(lambda: read(spark, tmp_path).collect())
    crc = "byte 738: the declared crc is 0x7a34c9db"
    assert f"CaptureError: {tmp_path}/flipped-0/{BASE}.log, {crc}" in told
    rows = read(spark, tmp_path, mode="permissive")
    bad = rows.where("_corrupt_record is not null").orderBy("topic").collect()
    assert [(row.topic, row.offset) for row in bad] == [("flipped", None), ("torn", None)]
    assert rows.count() == 32 + 1 + 3 + 1
    renamed = read(spark, tmp_path, mode="permissive", columnNameOfCorruptRecord="damage")
    assert renamed.columns == [*rows.columns[:-1], "damage"]
    assert renamed.where("damage is not null").count() == 2
    # A schema may name the column too.
    asked = spark.read.format("kafka-log").schema("damage string, offset bigint")
    asked = asked.options(mode="PERMISSIVE", columnNameOfCorruptRecord="damage")
    assert asked.load(str(tmp_path)).where("damage is null").count() == 32 + 3
    assert offsets(read(spark, tmp_path / "torn-0")) == [0, 1, 2]


@pytest.mark.long
def test_what_is_not_there_is_said_with_what_is(spark: SparkSession, tmp_path: Path) -> None:
    MadeSegment(0).write(tmp_path / "empty-0")
    assert read(spark, tmp_path).collect() == []
    told = refusal(lambda: read(spark, tmp_path, starting="1"))
    assert (
        "ArgumentError: there is no option starting; choose one of: columnNameOfCorruptRecord, "
        in told
    )
    told = refusal(lambda: read(spark, tmp_path / "nothing").count())
    assert f"CaptureError: {tmp_path}/nothing: no such file or directory" in told
    wrong = spark.read.format("kafka-log").schema("offset int").load(str(tmp_path))
    expected = "ArgumentError: column offset: expected the type bigint, with all parts nullable"
    assert expected in refusal(wrong.count)
