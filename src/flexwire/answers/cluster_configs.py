"""The dynamic configurations in the log of a cluster's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.state.cluster import CHANGE_COLUMNS, RECORD, changed, latest, named
from flexwire.protocol.configurations import RESOURCE_TYPES
from flexwire.protocol.credentials import SECRET_CONFIG, SECRET_VALUE, WITHHELD
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.answers.state.cluster import ClusterState


CONFIG, TOPIC, REMOVED = "ConfigRecord", "TopicRecord", "RemoveTopicRecord"
READS: Final = {
    CONFIG: ("resource_type", "resource_name", "name", "value"),
    TOPIC: ("topic_id", "name"),
    REMOVED: ("topic_id",),
}
# An enumeration that exists only in Kafka's Java code, and in no spec.
RESOURCES: Final = {2: "topic", 4: "broker", 8: "broker_logger", 16: "client_metrics", 32: "group"}
_OF_TOPIC, _OF_BROKER = 2, 4
VIEW_COLUMNS: Final = (
    Column(
        "resource_type",
        pa.string(),
        "topic, broker, broker_logger, client_metrics or group",
        heading="Resource type",
        is_about=True,
    ),
    Column(
        "resource_name",
        pa.string(),
        "the name of the resource; for a broker, the broker's id, or an empty string for the "
        "default of all brokers",
        heading="Name",
        is_about=True,
    ),
    Column("name", pa.string(), "the configuration's name", heading="Configuration", is_about=True),
    Column(
        "value",
        pa.string(),
        '"withheld" if the name or the value suggests a secret',
        "if the configuration was removed, alone or together with its topic",
    ),
    *CHANGE_COLUMNS,
)


def with_effective(placed: DataFrame, state: ClusterState, config: str) -> DataFrame:
    """Add the effective ``value`` of a topic configuration and its ``source`` to partitions.

    ``placed`` contains ``topic`` and ``leader``. As in Kafka, the topic's own value takes
    precedence over the leader's value ("broker"), which takes precedence over the value for all
    brokers ("cluster"). If none of them is set, both columns are null: the value then comes from
    the brokers' files or from Kafka's defaults, and the log contains neither. If some brokers have
    their own values, the value is also unknown for a partition without a leader.
    """
    values = configs(state).where((F.col("name") == config) & F.col("value").isNotNull())
    is_broker = F.col("resource_type") == RESOURCES[_OF_BROKER]
    own = values.where(F.col("resource_type") == RESOURCES[_OF_TOPIC])
    own = own.select(F.col("resource_name").alias("topic"), F.col("value").alias("of_topic"))
    brokers = values.where(is_broker & (F.col("resource_name") != ""))
    each = brokers.select(
        F.col("resource_name").cast("int").alias("leader"), F.col("value").alias("of_broker")
    )
    every = values.where(is_broker & (F.col("resource_name") == "")).select(
        F.col("value").alias("of_cluster")
    )
    any_own = brokers.agg((F.count("*") > 0).alias("any_own"))
    both = placed.join(own, "topic", "left").join(F.broadcast(each), "leader", "left")
    both = both.join(F.broadcast(every), F.lit(True), "left").join(F.broadcast(any_own))
    is_settled = F.col("leader").isNotNull() | ~F.col("any_own")
    of_cluster = F.when(is_settled, F.col("of_cluster"))
    source = F.when(F.col("of_topic").isNotNull(), "topic").when(
        F.col("of_broker").isNotNull(), "broker"
    )
    effective = both.withColumns(
        {
            "value": F.coalesce("of_topic", "of_broker", of_cluster),
            "source": source.when(of_cluster.isNotNull(), "cluster"),
        }
    )
    return effective.select(*placed.columns, "value", "source")


def configs(state: ClusterState) -> DataFrame:
    """Return the configurations that are set or have been removed since the state's snapshot."""
    rows = state.typed(READS)
    is_config = F.col(CONFIG).isNotNull()
    topic_id = F.coalesce(f"{TOPIC}.topic_id", f"{REMOVED}.topic_id")
    resource = F.col(f"{CONFIG}.resource_name")
    # A record that removes a topic contains only the topic's id.
    of_topic = Window.partitionBy(F.coalesce(topic_id, resource))
    name = F.max(F.when(~is_config, F.col(f"{TOPIC}.name"))).over(of_topic)
    rows = rows.withColumns(
        {
            "resource_type": F.coalesce(f"{CONFIG}.resource_type", F.lit(_OF_TOPIC)),
            "resource_name": F.when(is_config, resource).otherwise(name),
        }
    )
    # Removing a topic also removes its configuration, but not the configuration of a later topic
    # with the same name.
    of_resource = Window.partitionBy("resource_type", "resource_name")
    removal = F.when(F.col(REMOVED).isNotNull(), F.struct(*RECORD))
    rows = rows.withColumn("removal", F.max(removal).over(of_resource)).where(is_config)
    rows = rows.withColumn("name", F.col(f"{CONFIG}.name"))
    last = latest(rows, "resource_type", "resource_name", "name")
    is_gone = F.coalesce(F.col("removal") > F.struct(*RECORD), F.lit(False))
    value = F.when(~is_gone, F.col(f"{CONFIG}.value"))
    record = {
        field: F.when(is_gone, F.col(f"removal.{field}")).otherwise(F.col(field))
        for field in RECORD
    }
    last = last.withColumns({"value": value, **record})
    is_secret = F.col("name").rlike(f"(?i){SECRET_CONFIG}") | F.col("value").rlike(
        f"(?i){SECRET_VALUE}"
    )
    shown = F.when(
        F.col("value").isNotNull(), F.when(is_secret, WITHHELD).otherwise(F.col("value"))
    )
    return last.select(
        named(F.col("resource_type"), RESOURCE_TYPES).alias("resource_type"),
        "resource_name",
        "name",
        shown.alias("value"),
        *changed(),
    )


_VALUE: Final = VIEW_COLUMNS[3]
COLUMNS = (
    *VIEW_COLUMNS[:3],
    Column(_VALUE.name, _VALUE.type, f"the value; {_VALUE.meaning}", heading="Value"),
    *VIEW_COLUMNS[4:],
)


@returns(COLUMNS)
def cluster_configs(tables: AnalysisTables) -> DataFrame | None:
    """Return the configurations that are set in the cluster's metadata.

    The metadata contains neither values from the configuration files of brokers nor default values.
    """
    state = tables.cluster()
    if state is None:
        return None
    return configs(state).where("value is not null")


ANSWER = Answer(
    name="cluster_configs",
    place=340,
    question="What is configured for topics, brokers and groups?",
    meaning="Dynamic configurations in the cluster's metadata. Settings in the brokers' "
    "configuration files are not included.",
    advice="Keep the CSV file, and compare it with one from another day or cluster. Look for "
    "topics whose retention or min.insync.replicas differs from that of other topics.",
    row="a configuration",
    columns=COLUMNS,
    order=("resource_type", "resource_name", "name"),
    ask=cluster_configs,
    asks=(InternalTopic.METADATA.topic,),
)
