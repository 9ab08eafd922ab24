"""The tables of an analysis by objects: the reference, which all that is faster is held to.

```
capture files ─▶ segments ─▶ frames ─▶ requests ⋈ responses ─▶ messages/<Message> ─▶ records
                                                  └────────────────┴─▶ frames
```
Every packet, frame, message and record is a Python object, and Spark joins them. What lies between
two jobs is Parquet in a working directory below the output, so that nothing is computed twice and
every body is decoded once. Besides for tests it is there for captures of which too many files
overlap in time to be merged.
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.errors import CaptureError
from flexwire.facts.facts import UnreadableFile
from flexwire.records.inflation import INFLATION
from flexwire.spark.by_objects.bodies import decode_bodies
from flexwire.spark.by_objects.connections import connections_table
from flexwire.spark.by_objects.frames import PACKETS, assemble_frames
from flexwire.spark.by_objects.outcomes import SOFTWARE, SOFTWARE_MESSAGE, frames_table, software_of
from flexwire.spark.by_objects.pairs import pair_frames, with_payloads
from flexwire.spark.by_objects.records import (
    carried_records,
    decode_records,
    inflated_sum,
    name_topics,
)
from flexwire.spark.by_objects.segments import read_captures
from flexwire.spark.inputs import SHOWN, Unreadable
from flexwire.spark.progress import Steps, watched_tasks
from flexwire.spark.tables import Tables, outcomes_of, write_table
from flexwire.tables.inflated import Meter, within_allowance
from flexwire.tables.message_schema import table_schema
from flexwire.tables.messages import without_record_bytes
from flexwire.tables.schema import RECORDS
from flexwire.tables.spec_places import RECORDS_FIELDS, TOPIC_NAMES_MESSAGE
from flexwire.tasks import map_in_arrow, spark_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from flexwire.capture.reassembly.connections import Brokers
    from flexwire.records.inflation import Inflation
    from flexwire.spark.progress import Clock, Progress
    from flexwire.spark.publishing.local import LocalStaging


# A small job is mostly waiting for Spark to plan and commit it.
JOBS_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class ObjectTables:
    """The stages of one analysis in order, each from what the one before wrote."""

    spark: SparkSession
    place: LocalStaging
    progress: Progress
    clock: Clock
    show_credentials: bool
    record_bytes: bool
    brokers: Brokers
    captured_release: str | None
    skip_unreadable: bool = False
    inflation: Inflation = INFLATION
    captured: int = 0

    @property
    def tables(self) -> Tables:
        """Where they are written."""
        return Tables(self.place.new / "tables")

    def write(self, files: list[str]) -> Unreadable:
        """Write all tables but that of the audit; gives the files that have nothing in them."""
        wire = self._read_captures(files)
        unreadable = self._unreadable()
        unreadable.check(len(files), skip=self.skip_unreadable)
        self._check_packets()
        frames = self._pair(wire)
        self._decode_messages(frames)
        with self._stage("Writing records and frames"):
            self._together([self._write_records, partial(self._write_frames, frames)])
        if not self.record_bytes:
            self._drop_record_bytes()
        return unreadable

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        with self.clock.stage(name), watched_tasks(self.spark, self.progress, name):
            yield

    def _together(self, actions: list[Callable[[], None]]) -> None:
        """Run actions a few at once; raises what the first of them to fail raised."""
        with ThreadPoolExecutor(JOBS_AT_ONCE) as pool:
            try:
                for future in [pool.submit(action) for action in actions]:
                    future.result()
            except BaseException:
                # Of no use any more, and somebody waits.
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _read_captures(self, files: list[str]) -> DataFrame:
        with self._stage("Reading captures"):
            segments = read_captures(self.spark, files, show_credentials=self.show_credentials)
            frames = assemble_frames(
                segments, show_credentials=self.show_credentials, brokers=self.brokers
            )
            wire = self._through(frames, "wire", "kind")
            packets = wire.where(F.col("kind") == PACKETS)
            noted = packets.select(
                "source",
                F.col("error").alias("reason"),
                F.col("size").alias("packets"),
                F.col("payload").alias("sample"),
            )
            connections = connections_table(wire)
            self._together(
                [
                    partial(write_table, noted.coalesce(1), self.tables.packets),
                    partial(write_table, connections.coalesce(1), self.tables.connections),
                ]
            )
        return wire

    def _unreadable(self) -> Unreadable:
        # No other reason is told without a packet.
        rows = self._table(self.tables.packets).where("reason is not null and packets = 0")
        found = rows.orderBy("source").take(SHOWN)
        count = len(found) if len(found) < SHOWN else rows.count()
        return Unreadable(count, tuple(UnreadableFile(row.source, row.reason) for row in found))

    def _check_packets(self) -> None:
        """Raise what was wrong with the first file when no file gave a packet."""
        packets = self._table(self.tables.packets).orderBy(F.desc("packets"), "source")
        if not packets.where("packets > 0").take(1):
            for row in packets.where("reason is not null").take(1):
                raise CaptureError(row.reason, source=row.source)

    def _pair(self, wire: DataFrame) -> DataFrame:
        with self._stage("Pairing requests and responses"):
            frames = with_payloads(pair_frames(wire), wire, show_credentials=self.show_credentials)
            # One directory a message, so that its job reads nothing else; rebalanced, so that a
            # small capture has one file in each and a large one has files of the usual size.
            return self._through(frames.hint("rebalance", "body"), "frames", "body")

    def _through(self, rows: DataFrame, name: str, partition: str) -> DataFrame:
        """The same rows, from a file in the working directory."""
        write_table(rows, self.place.work / name, partition)
        return self.spark.read.schema(rows.schema).parquet(str(self.place.work / name))

    def _decode_messages(self, frames: DataFrame) -> None:
        stage = "Decoding messages"
        with self.clock.stage(stage):
            counted = frames.where("body is not null").groupBy("body")
            sizes = counted.agg(F.sum("size").alias("bytes")).collect()
            # The largest first: the last to finish should be a small one.
            names = [row.body for row in sorted(sizes, key=lambda row: -row.bytes)]
            steps = Steps(self.progress, stage, len(names))
            self._together([partial(self._decode_message, frames, name, steps) for name in names])

    def _decode_message(self, frames: DataFrame, name: str, steps: Steps) -> None:
        carried = frames.where(F.col("body") == name)
        decoded = decode_bodies(
            carried, name, show_credentials=self.show_credentials, release=self.captured_release
        )
        write_table(decoded, self.tables.message(name))
        steps.finish()

    def _write_records(self) -> None:
        names = self.tables.message_names()
        carried = [
            carried_records(self._message(where.message), where)
            for where in RECORDS_FIELDS
            if where.message in names
        ]
        if carried:
            named = name_topics(reduce(DataFrame.unionByName, carried), self._metadata())
            within_allowance(self.inflation, partial(self._write_carried, named))
        else:
            write_table(self._empty(RECORDS), self.tables.records)

    def _write_carried(self, named: DataFrame, inflation: Inflation) -> None:
        shutil.rmtree(self.tables.records, ignore_errors=True)
        meter, taken = Meter(inflation, self.captured), Observation()
        records = decode_records(named, inflation, self.captured)
        sums = inflated_sum(inflation).alias("bytes")
        write_table(records.observe(taken, sums), self.tables.records)
        meter.take(taken.get["bytes"])
        meter.check()

    def _metadata(self) -> DataFrame | None:
        known = TOPIC_NAMES_MESSAGE in self.tables.message_names()
        return self._message(TOPIC_NAMES_MESSAGE) if known else None

    def _write_frames(self, frames: DataFrame) -> None:
        if SOFTWARE_MESSAGE in self.tables.message_names():
            software = software_of(self._message(SOFTWARE_MESSAGE))
        else:
            software = self._empty(SOFTWARE)
        write_table(frames_table(frames, self._outcomes(), software), self.tables.frames)

    def _drop_record_bytes(self) -> None:
        for name in {where.message for where in RECORDS_FIELDS} & {*self.tables.message_names()}:
            schema = table_schema(name, self.captured_release, record_bytes=False)
            kept = self.place.work / "without" / name
            write_table(map_in_arrow(self._message(name), _without_record_bytes, schema), kept)
            shutil.rmtree(self.tables.message(name))
            kept.rename(self.tables.message(name))

    def _message(self, name: str) -> DataFrame:
        return self._table(self.tables.message(name))

    def _outcomes(self) -> DataFrame:
        return outcomes_of(self.spark, self.tables)

    def _empty(self, schema: pa.Schema) -> DataFrame:
        return self.spark.createDataFrame([], spark_schema(schema))

    def _table(self, path: Path) -> DataFrame:
        return self.spark.read.parquet(str(path))


def _without_record_bytes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from map(without_record_bytes, batches)
