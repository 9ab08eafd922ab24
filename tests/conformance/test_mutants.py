"""Every deviation that a seed draws is found in its case, and nowhere else."""

from __future__ import annotations

import pytest

from flexwire.client import Broker
from flexwire.conformance import Asking, Case, ConformanceRun, conform, plan_with_hostile, rules
from flexwire.conformance.rules import find_quirk
from flexwire.conformance.writing import own_name
from tests.conformance.brokers import RELEASE, kafka_like
from tests.conformance.mutants import MUTATIONS, Mutant, draw, mutated

SECONDS = 300.0
BRIEF = 5.0
"""How long a run waits if its mutant withholds an answer."""
SEED = 7
COUNT = 2 * len(MUTATIONS)


def drawn(
    address: str, release: str, seed: int, count: int, own: str = ""
) -> list[tuple[Asking, Mutant]]:
    """Return mutants of the cases of a broker's APIs, each with options that test only that API.

    With ``own`` the cases are those that change a cluster.
    """
    with Broker.connect(address) as broker:
        offered = dict(broker.offered)
    plan = plan_with_hostile(offered, Asking(release, hostile=True, own=own, disposable=bool(own)))
    found = []
    cases = [case for case in plan.cases if case.writes is bool(own)]
    # Some releases close the connection on such a request, which breaks no rule.
    cases = [
        case
        for case in cases
        if find_quirk(rules.ANSWERED, case.api_name, case.version, release) is None
    ]
    for mutant in draw(cases, seed, count):
        keys = frozenset((mutant.case.api_key,))
        asking = Asking(release, keys, hostile=True, own=own, disposable=bool(own))
        # The correlation ids are those of a run that tests only this API.
        case = same_case(mutant.case, plan_with_hostile(offered, asking).cases)
        found.append((asking, mutant._replace(case=case)))
    return found


def same_case(case: Case, cases: tuple[Case, ...]) -> Case:
    [found] = [one for one in cases if one.name == case.name]
    return found


def patience(mutant: Mutant) -> float:
    """Return how long a run waits for an answer, in seconds."""
    return BRIEF if mutant.mutation.is_slow else SECONDS


def check_found(run: ConformanceRun, mutant: Mutant) -> None:
    """Assert that a run finds a mutant in its case, by its rule, and nothing else."""
    told = [(one.case.name, one.deviation and one.deviation.rule.name) for one in run.deviations]
    rules = {rule.name for rule in mutant.mutation.broken(mutant.case)}
    assert [name for name, _ in told] == [mutant.case.name], (mutant.words, told)
    assert {rule for _, rule in told} <= rules, (mutant.words, told)


@pytest.mark.long
@pytest.mark.slow
def test_each_mutant_is_found_in_its_case_and_none_without() -> None:
    planted = 0
    with kafka_like() as (address, _):
        with mutated(address, None) as (proxied, _):
            run = conform(proxied, Asking(RELEASE, hostile=True), timeout=SECONDS)
            assert run.as_kafka == run.judged > 700
        for asking, mutant in drawn(address, RELEASE, SEED, COUNT):
            with mutated(address, mutant) as (proxied, proxy):
                run = conform(proxied, asking, timeout=patience(mutant))
            if proxy.planted:
                check_found(run, mutant)
                planted += 1
            else:
                assert run.deviations == ()
    # A few responses contain no place for an error.
    assert planted >= COUNT - 2


@pytest.mark.long
@pytest.mark.slow
def test_each_mutant_of_a_request_that_changes_something_is_found_too() -> None:
    planted = 0
    with kafka_like() as (address, _):
        for asking, mutant in drawn(address, RELEASE, SEED, COUNT, own=own_name()):
            with mutated(address, mutant) as (proxied, proxy):
                run = conform(proxied, asking, timeout=patience(mutant))
            assert proxy.planted, mutant.words
            check_found(run, mutant)
            planted += 1
    assert planted == COUNT
