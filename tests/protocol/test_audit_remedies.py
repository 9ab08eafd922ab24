"""A remedy is something that a person can do: change a setting, or upgrade to a release."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import pytest

from flexwire.protocol.audit import PINS, ClientFinding, Conduct, Party, Use, judge
from flexwire.protocol.audit.software import (
    LIBRARIES,
    Library,
    find_library,
    is_new_enough,
    libraries_are_about,
)
from flexwire.schema.catalog import catalog
from flexwire.versions import Versions
from tests.kafka.trial.rows import JUDGED, Row, read_rows

FETCH, JOIN_GROUP = 1, 11
ROWS = read_rows()
FIRST = {one.library: one for one in LIBRARIES}
# A client's name in the trial, without its release, and its library.
TRIED = {
    "kafka-clients": "kafka-clients (Java)",
    "librdkafka": "librdkafka and the libraries built on it",
    "sarama": "Sarama",
    "kafka-go": "kafka-go",
    "KafkaJS": "KafkaJS",
}


def refused(party: Party, release: str = "4.0.2", **evidence: Any) -> ClientFinding:
    """Return the finding that Kafka 4 refuses a version to which the client limits itself."""
    told = {"asked": "here", "offered": Versions(0, 17), **evidence}
    (found,) = (
        one
        for one in judge(party, Conduct("client", (Use(FETCH, 3, 1, 0, 0, **told),)), release)
        if one.api_key is not None
    )
    return found


def named(library: Library, version: str | None = None) -> Party:
    """Return a client of the library, by its own name or by its default client id."""
    if library.software is not None and version is not None:
        return Party("a", "10.0.0.9", None, library.software, version)
    client_id = re.sub(r"\\|\.\*", "", library.client_id or "")
    return Party(client_id, "10.0.0.9")


@pytest.mark.parametrize(
    "library",
    [one for one in LIBRARIES if one.client_id or one.software],
    ids=lambda one: one.library,
)
def test_the_remedy_for_each_library_is_its_first_release_or_its_own_sentence(
    library: Library,
) -> None:
    party = named(library) if library.client_id else named(library, "0.0.1")
    assert find_library(party) is library
    found = refused(party)
    if library.works_from:
        name = library.library.partition(" and ")[0]
        assert f"upgrade to {name} {library.works_from} or newer" in found.remedy
        settings = [pin.remedy for pin in PINS if pin.client == library.library]
        assert all(one in found.remedy for one in settings)
    else:
        assert library.remedy == found.remedy
    assert found.source == library.citation
    assert "one that speaks" not in found.remedy


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda one: one.library)
def test_each_row_has_its_sources_and_the_day_on_which_they_were_looked_at(
    library: Library,
) -> None:
    assert library.sources
    assert all(library.sources)
    assert date(2026, 11, 1) <= date.fromisoformat(library.checked)
    assert bool(library.works_from) != bool(library.remedy)


def test_a_nameless_client_gets_the_settings_and_every_first_release() -> None:
    remedy = refused(Party("billing", "10.0.0.9")).remedy
    for one in LIBRARIES:
        name = one.library.partition(" and ")[0]
        assert not one.works_from or f"{name} {one.works_from}" in remedy
    for setting in ("api_version of kafka-python", "Config.Version of Sarama", "of Telegraf"):
        assert setting in remedy
    assert remedy.endswith("speaks Fetch 4-17")


def test_software_that_nobody_knows_is_named_with_the_versions_that_it_needs() -> None:
    found = refused(Party("a", None, None, "home-grown", "1.0"))
    assert found.remedy == "upgrade home-grown to a release that speaks Fetch 4-17"


def test_a_client_that_is_new_enough_is_told_of_its_setting_only() -> None:
    party = Party("a", None, None, "sarama", "v1.61.1")
    assert is_new_enough(party, FIRST["Sarama"])
    assert "upgrade" not in refused(party).remedy
    assert "Config.Version" in refused(party).remedy
    # Telegraf names the version of its Sarama, which is not Telegraf's.
    assert not is_new_enough(Party("Telegraf", None, None, "sarama", "v1.61.1"), FIRST["Telegraf"])


def test_two_clients_with_one_library_are_told_apart_by_their_default_client_id() -> None:
    for client_id, library in (("Telegraf", "Telegraf"), ("beats", "Beats"), ("x", "Sarama")):
        found = find_library(Party(client_id, None, None, "sarama", "v1.46.0"))
        assert found is FIRST[library]
    # The software name that a client sends takes precedence over its client id.
    assert find_library(Party("rdkafka", None, None, "kgo", "v1")) is FIRST["franz-go"]
    assert find_library(Party("rdkafka", None, None, "unheard-of", "1")) is None


def test_a_patch_that_reads_the_version_again_is_in_the_remedy() -> None:
    one = Use(JOIN_GROUP, 1, 1, 0, 0, "here", Versions(0, 9))
    (found,) = judge(Party("billing", None), Conduct("client", (one,)), "4.0.0")
    assert "upgrade the brokers to 4.0.2 instead" in found.remedy


def test_the_table_is_about_kafka_4_as_far_as_it_was_looked_at() -> None:
    about = [one for one in catalog().releases if libraries_are_about(one)]
    assert about == [one for one in catalog().releases if one.startswith("4.")]
    assert not libraries_are_about("no release")


def test_what_cannot_be_said_is_to_be_tried_or_captured() -> None:
    tried = refused(Party("billing", None), offered=Versions(0, 3))
    assert tried.verdict == "cannot say"
    assert tried.remedy.startswith(
        "test the client against a Kafka 4.0.2 broker, or upgrade the client"
    )
    unseen = refused(Party("billing", None), offered=None, asked="unseen")
    assert unseen.remedy.startswith("capture the client from the start of a connection")


def numbers(version: str) -> list[int]:
    return [int(one) for one in re.findall(r"\d+", version)]


def of_trial(row: Row) -> tuple[Library | None, str, str]:
    """Return a client's library (if its first working release is known), release and setting."""
    program, _, version = row.client.partition(" ")
    release, _, setting = version.partition(", ")
    return FIRST.get(TRIED.get(program, "")), release, setting


@pytest.mark.parametrize(
    "row", [one for one in ROWS if of_trial(one)[0]], ids=lambda one: one.client
)
def test_the_first_release_that_works_is_what_the_trial_found(row: Row) -> None:
    """Every test from the first release passed, unless a setting pins the version."""
    library, release, setting = of_trial(row)
    assert library is not None
    assert library.works_from is not None
    broken = {one for judged in JUDGED for one in row.broken(judged)}
    if not setting and numbers(release) >= numbers(library.works_from):
        assert not broken
    if broken:
        assert setting or numbers(release) < numbers(library.works_from)


def test_the_trial_has_both_sides_of_the_first_releases() -> None:
    sides: dict[str, set[bool]] = {}
    for library, release, setting in map(of_trial, ROWS):
        if library is not None and library.works_from and not setting:
            newer = numbers(release) >= numbers(library.works_from)
            sides.setdefault(library.library, set()).add(newer)
    assert [one for one, seen in sides.items() if seen == {True, False}] == [
        "kafka-clients (Java)", "librdkafka and the libraries built on it", "Sarama", "kafka-go",
    ]  # fmt: skip
