"""`--write` finds no unexplained deviation in Apache Kafka, and removes what it created."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexwire.conformance import Asking, CaseVerdict, conform
from flexwire.conformance.rules import SEEN_CODES
from flexwire.conformance.writing import own_name, write_questions
from flexwire.protocol.error_codes import RETRIABLE
from tests.conformance.test_journal import StoppedError, stop_after
from tests.kafka.test_conformance import SECONDS, kafka, state, state_of_topics
from tools.broker import VERSIONS, broker

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["kafka"]
pytestmark = pytest.mark.kafka

# Offsets in ZooKeeper, which 3.9.2 still offers to commit.
NOT_JUDGED = {"3.9.2": {("OffsetCommit", 0)}, "4.0.2": set(), "4.4.0": set()}


def test_writes_are_as_kafka_and_leave_nothing(kafka: tuple[str, str]) -> None:
    release, address = kafka
    before = state(address)
    run = conform(address, Asking(release, own=own_name()), timeout=SECONDS)
    assert state(address) == before
    assert (run.deviations, run.left) == ((), ())
    writes = [one for one in run.results if one.case.writes]
    assert {one.case.api_name for one in writes} == {*write_questions("")}
    unjudged = {
        (one.case.api_name, one.case.version)
        for one in writes
        if one.verdict is CaseVerdict.NOT_JUDGED
    }
    assert unjudged == NOT_JUDGED[release]
    assert {one.remark for one in writes if one.verdict is CaseVerdict.AS_KAFKA} == {""}
    quirks = {one.case.name for one in writes if one.verdict is CaseVerdict.QUIRK}
    is_old = release.startswith("3.")
    assert quirks == (set() if is_old else {f"Produce {version}, plain" for version in range(3)})
    # They did something: each API had a request without an error, or with the code of a stranger.
    for name in write_questions(""):
        codes = [one.error_codes - RETRIABLE for one in writes if one.case.api_name == name]
        is_of_nobody = name in {"Heartbeat", "SyncGroup", "LeaveGroup"}
        assert (frozenset() in codes) or is_of_nobody, name
        assert frozenset().union(*codes) <= SEEN_CODES.get(name, frozenset()) | {35}


@pytest.mark.parametrize("share", [3, 10, 60, 150])
def test_a_run_that_is_interrupted_leaves_nothing(kafka: tuple[str, str], share: int) -> None:
    release, address = kafka
    before = state(address)
    apis = frozenset((0, 8, 19, 20, 37, 42))
    asking = Asking(release, apis, own=own_name())
    watch: Any = stop_after(share) if share < 100 else None
    if watch is None:
        conform(address, asking, timeout=SECONDS)
    else:
        with pytest.raises(StoppedError):
            conform(address, asking, timeout=SECONDS, watch=watch)
    assert state(address) == before


def test_a_new_cluster_gets_no_internal_topic(tmp_path: Path) -> None:
    with broker(VERSIONS[-1], tmp_path) as address:
        run = conform(address, Asking(VERSIONS[-1], own=own_name()), timeout=SECONDS)
        assert run.deviations == ()
        assert state_of_topics(address) == []
