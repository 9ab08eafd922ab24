"""An analysis of captures equals the reference: every table's rows, and every fact.

The reference reads each capture in plain Python (`tests.reference`). test_fixed_rows.py compares
the reference itself with committed rows.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.records import Compression
from fuzz.damage import damage_file
from tests.capture.interleaved import EVERYTHING, HOSTS, LOSSY, SHAPES, UNORDERED, write_capture
from tests.reference import facts as reference_facts
from tests.reference.tables import tables as reference_tables
from tests.searching import times, trying_few
from tests.spark.equality import assert_equal_tables, in_one_order
from tests.spark.traffic import TOPIC_ID, Traffic, made, nested, record_batch
from tests.tables.in_process import analyzed_in_process

if TYPE_CHECKING:
    from pathlib import Path

SMALL_RANGES: dict[str, Any] = {"range_bytes": 45_000, "chunk_bytes": 4_096}


def check(files: list[Path], **how: Any) -> dict[str, list[dict[str, Any]]]:
    """Compare an analysis with the reference. Return its tables."""
    given = {name: how[name] for name in ("brokers", "release", "show_credentials") if name in how}
    expected = reference_tables(files, **given)
    found, facts = analyzed_in_process(files, **how)
    assert_equal_tables(in_one_order(found), in_one_order(expected))
    brokers = how.get("brokers", BrokerEnds())
    told = reference_facts.facts(expected, brokers.named())
    for name, one in reference_facts.of_an_analysis(facts).items():
        assert one == told[name], name
    return found


@pytest.mark.long
@pytest.mark.slow
def test_an_analysis_of_everything_is_that_of_the_reference(tmp_path: Path) -> None:
    tables = check(write_capture(tmp_path, 1, EVERYTHING), **SMALL_RANGES)
    outcomes = {row["outcome"] for row in tables["frames"]}
    assert outcomes == {"decoded", "lenient", "failed", "unpaired", "token", "not Kafka"}
    assert {row["compression"] for row in tables["records"]} >= set(Compression)
    assert {row["magic"] for row in tables["records"]} >= {0, 1, 2}
    assert {row["topic"] for row in tables["records"]} >= {"orders", "größe", None}


@pytest.mark.long
@pytest.mark.slow
def test_captures_of_several_hosts_are_those_of_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only two of the nine files are open at the same time.
    monkeypatch.setattr("flexwire.capture.reassembly.merging.MOST_OPEN", 2)
    tables = check(write_capture(tmp_path, 1, HOSTS), **SMALL_RANGES)
    assert sum(row["repeated_bytes"] for row in tables["connections"]) > 10_000


def test_a_clock_that_goes_back_within_a_file_changes_nothing(tmp_path: Path) -> None:
    shape = replace(UNORDERED, taps=1, files=1, connections=4)
    check(write_capture(tmp_path, 3, shape), **SMALL_RANGES)


@pytest.mark.long
@pytest.mark.slow
def test_a_survey_in_pieces_is_that_of_the_reference(tmp_path: Path) -> None:
    files = write_capture(tmp_path, 2, replace(LOSSY, connections=6, taps=1))
    check(files, piece_bytes=20_000, **SMALL_RANGES)


@pytest.mark.parametrize(
    "brokers", [BrokerEnds.parse([9092], []), BrokerEnds.parse([], ["10.0.0.7:9093"])]
)
def test_brokers_and_credentials_that_are_shown_are_those_of_the_reference(
    tmp_path: Path, brokers: BrokerEnds
) -> None:
    shape = replace(SHAPES["STRANGE"], connections=6)
    check(write_capture(tmp_path, 5, shape), brokers=brokers, show_credentials=True)


@pytest.mark.slow
def test_a_release_of_the_brokers_is_that_of_the_reference(tmp_path: Path) -> None:
    shape = replace(SHAPES["STRANGE"], connections=4)
    check(write_capture(tmp_path, 6, shape), release="3.9.2")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(times(2)))
def test_damaged_captures_are_those_of_the_reference(seed: int, tmp_path: Path) -> None:
    source = random.Random(seed)
    files = write_capture(tmp_path, seed, replace(EVERYTHING, connections=5, taps=1 + seed % 2))
    for file in source.sample(files, 2):
        file.write_bytes(damage_file(source, file.read_bytes()))
    tables = check(files, skip_unreadable=True, **SMALL_RANGES)
    assert any(row["reason"] for row in tables["packets"])


def test_the_first_software_and_the_last_name_of_a_topic_are_those_of_the_reference(
    tmp_path: Path,
) -> None:
    traffic = Traffic(tmp_path)
    connection = traffic.connect()
    names = ("made-up", "another", "zeta")
    for number, name in enumerate(names):
        told = made("ApiVersionsRequest", client_software_name=name, client_software_version="1")
        traffic.exchange(connection, told, made("ApiVersionsResponse"), 3, number)
    for number, name in enumerate(("orders", "paid", "old"), len(names)):
        topic = nested("MetadataResponse", "MetadataResponseTopic", name=name, topic_id=TOPIC_ID)
        answer = made("MetadataResponse", topics=[topic])
        traffic.exchange(connection, made("MetadataRequest"), answer, 12, number)
    partition = nested(
        "FetchResponse", "PartitionData", records=record_batch((b"key", b"value", []))
    )
    fetched = nested(
        "FetchResponse", "FetchableTopicResponse", topic_id=TOPIC_ID, partitions=[partition]
    )
    traffic.exchange(
        connection, made("FetchRequest"), made("FetchResponse", responses=[fetched]), 13, 9
    )
    traffic.close()
    tables = check(sorted(tmp_path.iterdir()))
    assert {row["client_software_name"] for row in tables["frames"]} == {"made-up"}
    assert {row["topic"] for row in tables["records"]} == {"paid"}


FEW = ("EVERYTHING", "LOSSY", "STRANGE")


@pytest.mark.slow
@pytest.mark.parametrize("name", trying_few(sorted(SHAPES), FEW))
def test_captures_of_any_shape_are_those_of_the_reference(name: str, tmp_path: Path) -> None:
    check(write_capture(tmp_path, 7, SHAPES[name]), **SMALL_RANGES)
