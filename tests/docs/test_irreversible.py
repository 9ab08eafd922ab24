"""No answer calls the reason for an irreversible act certain. Each states what to check first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from flexwire.answers import ANSWERS
from flexwire.protocol.software_topics import SOFTWARE_TOPICS, software_of

if TYPE_CHECKING:
    from flexwire.answers.asking.answer import Answer

# Irreversible acts that an answer may lead to.
_ACTS = re.compile(
    r"\b(delet\w*|remov\w+|abort\w*|unregister\w*|wipe\w*|unclean|upgrade raises|reset-offsets"
    r"|compact\b|retention)",
)
# Words with which the advice states what to do or check first.
_FIRSTS = re.compile(r"\b([Ff]irst|[Aa]sk|[Bb]efore|[Kk]eep the CSV|loses for good)\b")
# These answers only name topic settings, or find existing objects.
_HARMLESS = {
    "cluster_configs": "compares retention between topics",
    "share_deliveries": "names a setting of time",
}
_CERTAIN = re.compile(
    r"\b(surely|certain(ly)?|definitely|safe(ly)?( to)?|guaranteed)\b", re.IGNORECASE
)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda one: one.name)
def test_what_cannot_be_undone_is_never_called_certain(answer: Answer) -> None:
    texts = [answer.question, answer.meaning, answer.advice]
    texts += [one.meaning for one in answer.columns] + [
        one.heading for one in answer.shown_columns()
    ]
    texts += [] if answer.picture is None else [answer.picture.title]
    acts = _ACTS.search(answer.advice)
    if acts and answer.name not in _HARMLESS:
        assert _FIRSTS.search(answer.advice), f"{acts[0]}: what is to be done before?"
        assert not [text for text in texts if _CERTAIN.search(text)]


def test_the_words_are_found_where_they_matter() -> None:
    acting = {one.name for one in ANSWERS if _ACTS.search(one.advice)} - _HARMLESS.keys()
    assert acting >= {
        *("unused_groups", "unused_topics", "hanging_transactions", "storage", "group_offsets"),
        *("cluster_brokers", "cluster_partitions", "cluster_credentials", "cluster_features"),
        *("cluster_voters", "tiered_storage", "group_state"),
    }


@pytest.mark.parametrize(
    ("topic", "software"),
    [
        *(("connect-offsets", "Kafka Connect"), ("my-connect-cluster-configs", "Kafka Connect")),
        *(("_connect-status", "Kafka Connect"), ("connect_statuses", "Kafka Connect")),
        *(("mm2-configs.a.internal", "MirrorMaker"), ("a.checkpoints.internal", "MirrorMaker")),
        *(("mm2-offset-syncs.b.internal", "MirrorMaker"), ("a.heartbeats", "MirrorMaker")),
        *(("_schemas", "Schema Registry"), ("kafkasql-journal", "Apicurio Registry")),
        *(
            ("_confluent-ksql-default__command_topic", "ksqlDB"),
            ("_confluent-metrics", "Confluent"),
        ),
        ("app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000001-topic", None),
        ("app-x-subscription-registration-topic", "Kafka Streams"),
        *(("app-store-changelog", "Kafka Streams"), ("app-x-repartition", "Kafka Streams")),
        *(("schema-changes.inventory", "Debezium"), ("dbhistory.orders", "Debezium")),
        *(("__CruiseControlMetrics", "Cruise Control"), ("__strimzi_canary", "Strimzi")),
        *(("__amazon_msk_canary", "internal by its name"), ("orders", None)),
        *(("connections", None), ("offsets", None), ("user-status", None), ("changelog", None)),
        *(("reconnect-offsets", None), ("app-changelogs", None), ("my_schemas", None)),
    ],
)
def test_topics_that_software_keeps_are_known_by_name(topic: str, software: str | None) -> None:
    assert software_of(topic) == software


def test_each_pattern_names_one_software_and_spans_the_name() -> None:
    for one in SOFTWARE_TOPICS:
        assert not one.pattern.startswith("^")
        assert not re.fullmatch(one.pattern, "orders")
