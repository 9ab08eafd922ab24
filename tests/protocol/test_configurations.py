"""Every release in the catalog has its own list of configurations, and few are ever removed."""

from __future__ import annotations

from pathlib import Path

from flexwire.protocol.configurations import (
    CONFIGURED_KINDS,
    find_removal,
    known_names,
    known_releases,
    removed_configurations,
)
from flexwire.schema.catalog import bundled_catalog, release_order
from tools.config_names import OUT, RELEASES, written

# LogConfig of 3.9.2 compared with 4.0.0; brokers of both were asked (40 for these, 0 for others).
OF_TOPICS = {
    "message.downconversion.enable",
    "message.format.version",
    "message.timestamp.difference.max.ms",
}


def test_every_release_of_the_catalog_from_the_last_3_on_has_its_names() -> None:
    """Every release of the catalog has a list; run `python -m tools.config_names` for a new one."""
    later = [
        one
        for one in bundled_catalog().releases
        if release_order(one) >= release_order(known_releases()[0])
    ]
    assert list(known_releases()) == later == list(RELEASES)


def test_exactly_three_configurations_of_topics_are_gone_from_4_on() -> None:
    for release in known_releases()[1:]:
        assert {
            name
            for kind, name in removed_configurations()
            if kind == "topic" and find_removal(kind, name, release)
        } == OF_TOPICS
    assert {name for kind, name in removed_configurations() if kind == "topic"} == OF_TOPICS


def test_what_is_gone_was_known_before_and_is_not_now() -> None:
    for kind, name in removed_configurations():
        for release in known_releases():
            since = find_removal(kind, name, release)
            assert (since is None) == (
                name in known_names(kind, release)
                # A name that a later release adds was not removed earlier.
                or not any(
                    name in known_names(kind, one)
                    for one in known_releases()
                    if release_order(one) <= release_order(release)
                )
            )
            if since is not None:
                assert name in known_names(kind, since.last)
                assert name not in known_names(kind, since.first)
                assert release_order(since.last) < release_order(since.first)
                assert release_order(since.first) <= release_order(release)


def test_a_name_of_a_plug_in_and_a_release_before_the_first_say_nothing() -> None:
    for kind in CONFIGURED_KINDS:
        assert find_removal(kind, "nonsense", "4.4.0") is None
        assert known_names(kind, "2.8.2") == frozenset()
    assert find_removal("topic", "message.format.version", "3.8.1") is None
    assert find_removal("topic", "message.format.version", "one of mine") is not None
    # A patch release that the catalog lacks is treated like the release before it.
    assert find_removal("topic", "message.format.version", "4.0.1") is not None


def test_the_file_is_what_the_tool_writes() -> None:
    known: dict[str, set[tuple[str, str]]] = {
        release: {(kind, name) for kind in CONFIGURED_KINDS for name in known_names(kind, release)}
        for release in known_releases()
    }
    assert written(known) == Path(OUT).read_text(encoding="utf-8")
