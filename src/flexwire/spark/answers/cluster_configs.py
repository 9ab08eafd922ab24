"""Dynamic configurations by the log of a cluster's metadata: `cluster_configs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flexwire.facts.answers import ShownColumn
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.nothing import no_rows
from flexwire.spark.internal_topics.cluster_configs import COLUMNS as OF_CONFIGS
from flexwire.spark.internal_topics.cluster_configs import configs
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.spark.answers.reading import AnalysisTables

_VALUE: Final = OF_CONFIGS[3]
COLUMNS = (
    *OF_CONFIGS[:3],
    Column(_VALUE.name, _VALUE.type, f"its value; {_VALUE.meaning}"),
    *OF_CONFIGS[4:],
)


def cluster_configs(tables: AnalysisTables) -> DataFrame:
    """Give a row for each configuration that is set in the cluster's metadata.

    What is in the files of brokers, and what has its default, no record says.
    """
    state = None if tables.internal is None else tables.internal.cluster()
    if state is None:
        return no_rows(tables.frames, COLUMNS)
    return configs(state).where("value is not null").select(*(one.name for one in COLUMNS))


ANSWER = Answer(
    "cluster_configs",
    "What is configured for topics, brokers and groups?",
    "Dynamic configurations as the cluster's metadata has them; those in the files of brokers are "
    "not among them.",
    "Keep the CSV, and compare it with that of another day or cluster; look for topics whose "
    "retention or min.insync.replicas is not like that of others.",
    "a configuration",
    COLUMNS,
    ("resource_type", "resource_name", "name"),
    (
        ShownColumn("resource_type", "Of a", is_about=True),
        ShownColumn("resource_name", "Name", is_about=True),
        ShownColumn("name", "Configuration", is_about=True),
        ShownColumn("value", "Value"),
        ShownColumn("changed_time", "Changed", "moment"),
    ),
    cluster_configs,
    asks=(InternalTopic.METADATA.topic,),
)
