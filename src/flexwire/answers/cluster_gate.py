"""The conditions in a cluster's metadata that block its upgrade to Kafka 4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.cluster_configs import configs
from flexwire.answers.cluster_features import features
from flexwire.measures.evidence import SHOWN
from flexwire.parties import VERDICTS
from flexwire.protocol.audit import ClusterSeen, NameSample, judge_cluster
from flexwire.protocol.configurations import CONFIGURED_KINDS, removed_configurations
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.schema.catalog import catalog
from flexwire.tables.schema import Column, schema_of
from flexwire.tasks import spark_schema
from flexwire.wire.batch_layout import RECORD_BATCH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.answers.state.cluster import ClusterState
    from flexwire.facts.audit import ClusterGate
    from flexwire.protocol.configurations import ConfiguredKind

_TEXT: Final = pa.string()
COLUMNS = (
    Column("gravity", pa.int32(), "the rank of the verdict; 0 is the most serious"),
    Column("gate", _TEXT, "the condition that was checked", heading="Gate", is_about=True),
    Column(
        "subject", _TEXT, "the configuration, feature or topic", heading="Subject", is_about=True
    ),
    Column("verdict", _TEXT, "the verdict, in the words of the audit", heading="Verdict"),
    Column(
        "releases", pa.list_(_TEXT), "the releases to which the verdict applies", heading="Releases"
    ),
    Column("evidence", _TEXT, "the rule that led to the verdict"),
    Column(
        "reason",
        _TEXT,
        "a sentence that contains the figures behind the verdict for the last of these releases",
        heading="Why",
    ),
    Column("remedy", _TEXT, "the recommended action", "if no action is needed", heading="Remedy"),
    Column(
        "names",
        pa.list_(_TEXT),
        "the first few affected topics, brokers or APIs",
        heading="Names",
    ),
    Column("count", pa.int64(), "the number of affected topics, brokers or APIs"),
    Column(
        "source",
        _TEXT,
        "the KIP or issue on which the verdict is based",
        "if the verdict needs no source",
    ),
)


@returns(COLUMNS)
def cluster_gate(tables: AnalysisTables) -> DataFrame | None:
    """Return each upgrade condition (gate) for each release from 4.0 on.

    Releases that have the same result share a row.

    The rows are the result of applying `flexwire.protocol.audit.judge_cluster` to the log of the
    cluster's metadata and to the batches in the other logs. The configuration files of brokers are
    not read, so configurations in server.properties are not detected.
    """
    state = tables.cluster()
    if state is None:
        return None
    seen = ClusterSeen(
        features={"": _levels(state)},
        configured=_configured(state),
        old_batches=None if tables.logs is None else _old_batches(tables.logs.batches),
        is_whole=True,
    )
    releases = catalog().final_releases
    rows = gate_rows([gate for each in releases for gate in judge_cluster(seen, each)])
    session = tables.frames.sparkSession
    return session.createDataFrame(rows, spark_schema(schema_of(COLUMNS)))


def gate_rows(gates: list[ClusterGate]) -> list[tuple[Any, ...]]:
    """Return findings as rows of `COLUMNS`.

    Findings that differ only in the release share a row.
    """
    alike: dict[tuple[str, ...], list[ClusterGate]] = {}
    for gate in gates:
        key = gate.gate, gate.subject, gate.verdict, gate.evidence, *gate.names
        alike.setdefault(key, []).append(gate)
    rows = []
    for some in alike.values():
        last = some[-1]
        texts = {
            "gravity": VERDICTS.index(last.verdict),
            "releases": [gate.release for gate in some],
            "names": list(last.names),
            "remedy": last.remedy or None,
            "source": last.source or None,
        }
        rows.append(
            tuple(
                texts[column.name] if column.name in texts else getattr(last, column.name)
                for column in COLUMNS
            )
        )
    return rows


def _levels(state: ClusterState) -> dict[str, int]:
    rows = features(state).where("until_offset is null and level > 0")
    return {row.feature: row.level for row in rows.select("feature", "level").collect()}


def _configured(state: ClusterState) -> dict[tuple[ConfiguredKind, str], NameSample]:
    kinds: dict[str, ConfiguredKind] = {kind: kind for kind in CONFIGURED_KINDS}
    names = sorted({name for _, name in removed_configurations()})
    rows = configs(state).where("value is not null")
    rows = rows.where(F.col("name").isin(names) & F.col("resource_type").isin([*kinds]))
    each = rows.groupBy("resource_type", "name").agg(
        F.slice(F.array_sort(F.collect_set("resource_name")), 1, SHOWN).alias("names"),
        F.count_distinct("resource_name").alias("count"),
    )
    return {
        (kinds[row.resource_type], row["name"]): NameSample(tuple(row.names), row["count"])
        for row in each.collect()
        if (kinds[row.resource_type], row["name"]) in removed_configurations()
    }


def _old_batches(batches: DataFrame) -> dict[str, int]:
    old = batches.where((F.col("magic") < RECORD_BATCH) & F.col("error").isNull())
    rows = old.groupBy("topic").agg(F.count("*").alias("found")).collect()
    return {row.topic: row.found for row in sorted(rows)}


ANSWER = Answer(
    name="cluster_gate",
    place=320,
    question="What blocks an upgrade of this cluster to Kafka 4?",
    meaning=(
        "The conditions for an upgrade to Kafka 4, as far as the logs show them: the "
        "metadata.version of the cluster, configurations that Kafka 4 no longer supports, features "
        "that are not finalized, and batches with magic 0 or 1."
    ),
    advice=(
        "Before the upgrade, remove configurations that Kafka 4 no longer supports. While a topic "
        "has such a configuration, Kafka 4.0.0 to 4.2.0 reject any other change to the topic."
    ),
    row="a condition and the configuration, feature or topic to which the condition applies",
    columns=COLUMNS,
    order=("gravity", "gate", "subject"),
    ask=cluster_gate,
    asks=(InternalTopic.METADATA.topic,),
)
