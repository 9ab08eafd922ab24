"""Dynamic configurations by the log of a cluster's metadata: `cluster_configs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flexwire.answers.asking.answer import Answer
from flexwire.answers.asking.nothing import returns
from flexwire.answers.state.cluster_configs import COLUMNS as OF_CONFIGS
from flexwire.answers.state.cluster_configs import configs
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.reading import AnalysisTables

_VALUE: Final = OF_CONFIGS[3]
COLUMNS = (
    *OF_CONFIGS[:3],
    Column(_VALUE.name, _VALUE.type, f"its value; {_VALUE.meaning}", heading="Value"),
    *OF_CONFIGS[4:],
)


@returns(COLUMNS)
def cluster_configs(tables: AnalysisTables) -> DataFrame | None:
    """Give a row for each configuration that is set in the cluster's metadata.

    What is in the files of brokers, and what has its default, no record says.
    """
    state = tables.cluster()
    if state is None:
        return None
    return configs(state).where("value is not null")


ANSWER = Answer(
    name="cluster_configs",
    place=340,
    question="What is configured for topics, brokers and groups?",
    meaning="Dynamic configurations as the cluster's metadata has them; those in the files of "
    "brokers are not among them.",
    advice="Keep the CSV, and compare it with that of another day or cluster; look for topics "
    "whose retention or min.insync.replicas is not like that of others.",
    row="a configuration",
    columns=COLUMNS,
    order=("resource_type", "resource_name", "name"),
    ask=cluster_configs,
    asks=(InternalTopic.METADATA.topic,),
)
