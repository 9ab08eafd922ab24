"""Deviations that a proxy plants in Apache Kafka's answers are found, each only in its own case.

``make conform-mutants SEED=8`` draws other deviations.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from flexwire.conformance import Asking, conform
from tests.conformance.mutants import mutated
from tests.conformance.test_mutants import check_found, drawn
from tests.kafka.test_conformance import SECONDS, kafka, state

if TYPE_CHECKING:
    from tests.conformance.mutants import Mutant

__all__ = ["kafka"]
pytestmark = pytest.mark.kafka

SEED = int(os.environ.get("FLEXWIRE_SEED", "7"))
COUNT = 30


def test_thirty_mutants_are_found_and_the_cluster_is_as_it_was(kafka: tuple[str, str]) -> None:
    release, address = kafka
    before = state(address)
    with mutated(address, None) as (proxied, _):
        run = conform(proxied, Asking(release, hostile=True), timeout=SECONDS)
    assert run.deviations == ()
    planted: list[Mutant] = []
    # If a response has no place for the mutation, another response is drawn.
    for asking, mutant in drawn(address, release, SEED, 2 * COUNT):
        if len(planted) == COUNT:
            break
        with mutated(address, mutant) as (proxied, proxy):
            run = conform(proxied, asking, timeout=SECONDS)
        if proxy.planted:
            check_found(run, mutant)
            planted.append(mutant)
        else:
            assert run.deviations == ()
    assert len(planted) == COUNT
    assert state(address) == before
