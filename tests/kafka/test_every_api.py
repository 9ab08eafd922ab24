"""All APIs that real clients and nodes use, by release, are decoded and encoded to the same bytes.

seen.json beside this file and docs/real-brokers.md record what was seen. If a release behaves
differently, the test fails; then ``python -m tests.docs.test_real_brokers_page`` records what the
last run of this test saw.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.messages import CapturedMessage, read_messages
from flexwire.cli.records_dump_options import DumpOptions
from flexwire.cli.records_dump_rows import rows
from flexwire.codec import message
from flexwire.records import decode_batches
from tests.cli.test_records_dump_kafka import BEGINNINGS, in_order, later_tool, tool_lines
from tests.kafka.driving import Said, compiled, drive
from tests.kafka.dumping import decoder, dumped
from tests.kafka.reaching import Reached, ask_every_version, reach, valid_versions
from tests.kafka.saying import CODECS, WORDS, by_call
from tests.kafka.seeing import ONE_NODE, SEEN, SOMETIMES, UNSEEN, last_seen
from tests.kafka.sidecars import LISTENERS, sidecars
from tools.broker import VERSIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

# All tests in this file have Spark's marker, although only one test starts Spark. Tests with Spark
# run first, so otherwise every cluster would be started and driven twice.
pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]
# Only the newest release has two brokers.
NODES = 3
HAVE_RECORDS = {"ProduceRequest", "FetchResponse"}
_PARTITIONS = re.compile(r"(?<=,partitions=\[)[^\]]*")


@dataclass(frozen=True)
class Driven:
    """The output of a cluster's clients, the results of `call`, and the files after the run."""

    release: str
    said: Said
    called: set[tuple[str, ...]]
    silent: dict[tuple[str, int], str]
    captures: Path
    logs: list[Path]
    reached: Reached


@pytest.fixture(scope="module", params=VERSIONS)
def driven(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Driven:
    release = request.param
    directory = tmp_path_factory.mktemp(f"driven-{release}")
    count = NODES if release == VERSIONS[-1] else 1
    plug_ins = compiled(release, directory / "plug-ins")
    with sidecars(release, count, directory, plug_ins) as cluster:
        said = drive(cluster)
        called = by_call(cluster)
        silent: dict[tuple[str, int], str] = {}
        for listener in ("PLAINTEXT", "CONTROLLER"):
            silent |= ask_every_version(cluster.address(listener))
    assert len(cluster.counts) == count * len(LISTENERS)
    for one in cluster.counts:
        assert one.failures == one.undecodable == one.unpaired == one.not_captured == 0, one
    reached = reach(cluster.captures.iterdir())
    assert sum(reached.messages.values()) == sum(
        one.requests + one.responses for one in cluster.counts
    )
    last_seen(release, reached)
    first = cluster.nodes[0]
    places = (first.directory / "data", first.second)
    logs = sorted(log for place in places for log in place.rglob("*.log"))
    return Driven(release, said, called, silent, cluster.captures, logs, reached)


def test_every_message_encodes_to_its_own_bytes(driven: Driven) -> None:
    assert not driven.reached.unused
    assert driven.reached.unlike == []
    # Each API with a request also has a response, except perhaps Produce.
    for name in driven.reached.versions | driven.reached.called:
        assert driven.reached.messages[f"{name}Response"] > 0, name


def test_every_api_is_reached_or_it_is_said_why_not(driven: Driven) -> None:
    valid = {
        **valid_versions(driven.release, "controller"),
        **valid_versions(driven.release, "broker"),
    }
    reasons = UNSEEN[driven.release] | (ONE_NODE if driven.release != VERSIONS[-1] else {})
    reached = {*driven.reached.versions}
    assert reached <= {*valid}
    assert {*valid} - reached - {*SOMETIMES} == {*reasons} - {*SOMETIMES}
    assert not reached & {*reasons} - {*SOMETIMES}
    for name, versions in driven.reached.versions.items():
        assert all(one in valid[name] for one in versions), name


def test_every_version_of_every_api_is_answered(driven: Driven) -> None:
    assert driven.silent == {}


def test_what_is_reached_is_what_the_page_says(driven: Driven) -> None:
    told = json.loads(SEEN.read_text(encoding="utf-8"))[driven.release]
    now = json.loads(last_seen(driven.release, driven.reached).read_text(encoding="utf-8"))
    for one in (told, now):
        for name in SOMETIMES:
            one["clients"].pop(name, None)
    assert now == told, "see this file's first lines"


def test_records_are_those_that_were_sent(driven: Driven) -> None:
    sent = {tuple(one) for one in driven.said["sent"]}
    assert len(sent) == 60 * len(CODECS)
    read: dict[str, Counter[tuple[str, ...]]] = {}
    for group, *one in driven.said["read"]:
        read.setdefault(group, Counter())[tuple(one)] += 1
    # In 3.9, KIP-848 groups are disabled.
    assert {*read} == {"drive-group", *(("drive-newer",) if driven.release >= "4" else ())}
    assert all(found == Counter(sent) for found in read.values())
    wanted = Counter[tuple[str, ...]](
        (partition, time, key, value) for _, partition, _, time, key, value in sent
    )
    produced, fetched = captured(driven.captures)
    assert produced == wanted
    assert not wanted - fetched


def captured(captures: Path) -> tuple[Counter[tuple[str, ...]], Counter[tuple[str, ...]]]:
    """Return partition, time, key and value of each record that was sent or fetched."""
    produced, fetched = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for one in read_messages(sorted(captures.iterdir())):
        if not isinstance(one, CapturedMessage) or one.name not in HAVE_RECORDS:
            continue
        body: Any = message(one.name).decode(one.body, one.version)
        header: Any = one.header
        if one.name == "ProduceRequest" and header.client_id == "java-producer":
            parts = [part for topic in body.topic_data for part in topic.partition_data]
            produced.update(line for part in parts for line in lines(part.index, part.records))
        elif one.name == "FetchResponse":
            parts = [part for topic in body.responses for part in topic.partitions]
            fetched.update(
                line for part in parts for line in lines(part.partition_index, part.records)
            )
    return produced, fetched


def lines(partition: int, records: bytes | None) -> Iterator[tuple[str, ...]]:
    for batch in decode_batches(records or b""):
        for one in batch.records:
            yield str(partition), str(one.timestamp), text(one.key), text(one.value)


def text(value: bytes | None) -> str:
    return "null" if value is None else f"={base64.b64encode(value).decode()}"


def test_call_is_told_what_the_admin_client_is(driven: Driven) -> None:
    said = {one for one in driven.said["says"] if one[0] in WORDS}
    assert {one[0] for one in said} == {*WORDS}
    assert driven.called == said


def test_a_dump_is_what_kafka_s_own_tool_prints(driven: Driven) -> None:
    logs = [log for log in driven.logs if log.stat().st_size]
    topics = {log.parent.name.rpartition("-")[0] for log in logs}
    internal = {"__consumer_offsets", "__transaction_state", "__cluster_metadata"}
    assert topics >= internal | {"drive-kept", *(f"drive-{codec}" for codec in CODECS)}
    kinds = sorted(logs, key=lambda log: (decoder(log) or "", log))
    for _, of_kind in groupby(kinds, key=decoder):
        for log, said in dumped(driven.release, list(of_kind)).items():
            expected = [in_order(line) for line in said if not line.startswith(BEGINNINGS)]
            found = ours(driven.release, log)
            assert [*map(in_any_order, found)] == [*map(in_any_order, expected)], log


def in_any_order(line: str) -> str:
    """Return a line with its partitions sorted, because the tool prints them in any order."""
    return _PARTITIONS.sub(lambda found: ",".join(sorted(found[0].split(","))), line)


def ours(release: str, log: Path) -> list[str]:
    found = list(rows(log, DumpOptions(deep=True, release=release, show_credentials=True)))
    tool = later_tool if release >= "4.1" else tool_lines
    return [line for row in found for line in tool(row, found)]


def test_an_analysis_counts_the_same_messages(
    spark: SparkSession, driven: Driven, tmp_path: Path
) -> None:
    from flexwire.spark.analyze import analyze  # noqa: PLC0415 - PySpark
    from flexwire.spark.answers.outputs import open_tables  # noqa: PLC0415 - PySpark

    analyze([driven.captures], tmp_path / "out", spark=spark)
    frames = open_tables(spark, tmp_path / "out").frames
    found = {row.message: row["count"] for row in frames.groupBy("message").count().collect()}
    assert found == driven.reached.messages
    assert frames.where("error is not null").count() == 0
