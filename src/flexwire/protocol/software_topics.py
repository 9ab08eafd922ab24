"""Internal topics of other software, which `software_of` recognizes by their names.

When its software starts, such a topic is read by consumers that assign partitions to themselves and
do not commit offsets. Group offsets therefore do not show whether the topic is needed.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class SoftwareTopics(NamedTuple):
    """A pattern for complete names, and the software whose default topic names match it.

    The pattern has the same meaning in Python and Java.
    """

    software: str
    pattern: str


SOFTWARE_TOPICS: Final = (
    # The names come from Kafka's connect-distributed.properties. Distributions add a prefix or
    # suffix.
    SoftwareTopics(
        "Kafka Connect", r"(.*[-_.])?connect([-_.].*)?[-_.](offsets?|configs?|status(es)?)"
    ),
    # The topics of MirrorMaker 2 and its connectors (KIP-382).
    SoftwareTopics("MirrorMaker", r"(mm2-.*|.*\.checkpoints)\.internal|mm2-offset-syncs\..*"),
    SoftwareTopics("MirrorMaker", r"(.*\.)?heartbeats"),
    SoftwareTopics("Schema Registry", r"_schemas|_schema_encoders|_.*[-_]schemas"),
    SoftwareTopics("Apicurio Registry", r"kafkasql-(journal|snapshots)"),
    SoftwareTopics("ksqlDB", r"_confluent-ksql-.*|.*ksql_processing_log"),
    # The application id comes first. The last two names belong to foreign-key joins of tables.
    SoftwareTopics("Kafka Streams", r".*-(changelog|repartition)(-.*)?"),
    SoftwareTopics("Kafka Streams", r".*-subscription-(registration|response)-topic"),
    SoftwareTopics(
        "Debezium", r"(.*[-_.])?(schema-?changes|db-?history|schema-?history)([-_.].*)?"
    ),
    SoftwareTopics("Strimzi", r"__strimzi.*|strimzi\.cruisecontrol\..*"),
    SoftwareTopics("Cruise Control", r"__CruiseControl.*|__KafkaCruiseControl.*"),
    SoftwareTopics("Confluent", r"_confluent.*"),
    # Kafka's own topics, and topics that other software marks as internal in the same way.
    SoftwareTopics("internal by its name", r"__.*"),
)
"""The first pattern that matches a name identifies the software that owns the topic."""


def software_of(topic: str) -> str | None:
    """Return the software that owns a topic, or None if the topic's name does not identify it.

    >>> software_of("connect-offsets"), software_of("app-store-changelog"), software_of("orders")
    ('Kafka Connect', 'Kafka Streams', None)
    """
    return next(
        (
            software.software
            for software in SOFTWARE_TOPICS
            if re.fullmatch(software.pattern, topic)
        ),
        None,
    )
