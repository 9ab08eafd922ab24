"""Two Apache Kafka brokers behave alike in every case, and a stopped comparison can continue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexwire.conformance import Asking, SecondBroker, conform, formats
from tests.conformance.mutants import mutated
from tests.conformance.test_journal import StoppedError, stop_after
from tests.conformance.test_mutants import check_found, drawn
from tests.kafka.test_conformance import SECONDS, kafka, state

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["kafka"]
pytestmark = pytest.mark.kafka

SEED, COUNT = 7, 5


def test_nothing_differs_and_the_cluster_is_as_it_was(kafka: tuple[str, str]) -> None:
    release, address = kafka
    before = state(address)
    asking = Asking(release, hostile=True)
    run = conform(address, asking, timeout=SECONDS, against=SecondBroker(address))
    assert run.against is not None
    assert formats.difference_rows(run) == []
    assert run.against.only_here == run.against.only_there == ()
    assert len(run.against.other.results) == len(run.results)
    assert state(address) == before


def test_what_a_proxy_plants_is_what_differs(kafka: tuple[str, str]) -> None:
    release, address = kafka
    against = SecondBroker(address)
    planted = 0
    for asking, mutant in drawn(address, release, SEED, 4 * COUNT):
        with mutated(address, mutant) as (proxied, proxy):
            run = conform(proxied, asking, timeout=SECONDS, against=against)
        differing = {here.case.name for here, _ in run.differences}
        assert differing == {one.case.name for one in run.deviations}
        if proxy.planted:
            check_found(run, mutant)
            planted += 1
        if planted == COUNT:
            break
    assert planted == COUNT


def test_a_run_that_was_stopped_says_the_same(kafka: tuple[str, str], tmp_path: Path) -> None:
    release, address = kafka
    asking, journal = Asking(release, hostile=True), tmp_path / "run.jsonl"
    whole = conform(address, asking, timeout=SECONDS)
    count = len(whole.results) // 2
    with pytest.raises(StoppedError):
        conform(address, asking, timeout=SECONDS, journal=journal, watch=stop_after(count))
    again = conform(address, asking, timeout=SECONDS, journal=journal)
    # A journal contains no answers that may hold credentials.
    assert count - 100 < again.resumed < count
    verdicts = [(one.case.name, one.verdict, one.error_codes) for one in whole.results]
    assert [(one.case.name, one.verdict, one.error_codes) for one in again.results] == verdicts
