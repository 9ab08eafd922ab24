"""`--write` finds no unexplained deviation in Apache Kafka, and removes everything it created."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.client import Broker
from flexwire.conformance import Asking, CaseVerdict, ConformanceRun, Kind, conform
from flexwire.conformance.rules import SEEN_CODES
from flexwire.conformance.write_plans import own_questions
from flexwire.conformance.writing import PREFIX, own_name, write_questions
from flexwire.protocol.apis import api_key_of
from flexwire.protocol.error_codes import RETRIABLE
from tests.conformance.test_journal import StoppedError, stop_after
from tests.kafka.test_conformance import SECONDS, kafka, state
from tests.net.broker import LOOPBACK, free_ports
from tools.broker import CLUSTER_ID, VERSIONS, broker, new_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["kafka"]
pytestmark = pytest.mark.kafka

# Offsets in ZooKeeper, which 3.9.2 still offers to commit, and groups of KIP-848, which are
# disabled.
NOT_JUDGED = {
    "3.9.2": {("OffsetCommit", 0), ("ConsumerGroupHeartbeat", 0)},
    "4.0.2": set(),
    "4.4.0": set(),
}
INTERNAL = {"__consumer_offsets", "__transaction_state", "__share_group_state"}
# These requests fail in every case, because they name an existing object or an object that does
# not exist.
ALWAYS_AN_ERROR = {
    "DeleteShareGroupOffsets",
    *("CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken"),
    *("ElectLeaders", "AlterReplicaLogDirs"),
    *("UpdateFeatures", "AddRaftVoter", "RemoveRaftVoter", "UnregisterBroker"),
}
NOT_LEADER, NOT_COORDINATOR = 6, 16
WITH_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def offered(address: str) -> set[int]:
    with Broker.connect(address) as asked:
        return {*asked.offered}


def told(address: str) -> dict[str, Any]:
    """Return the state of the cluster, without what groups and transactions always leave behind.

    These are internal topics, and a transactional id that cannot be removed.
    """
    found = state(address)
    found["topics"] = [one for one in found["topics"]["topics"] if one["name"] not in INTERNAL]
    for one in ("ListTransactions", "DescribeConfigs", "DescribeProducers"):
        del found[one]
    return found


def check(run: ConformanceRun, address: str, asking: Asking) -> None:
    """Assert that a run found nothing, and that its requests had an effect."""
    assert run.deviations == ()
    assert [one.split(" ", 2)[:2] for one in run.left] == [["transactional", "id"]]
    writes = [one for one in run.results if one.case.writes]
    keys = offered(address)
    names = {name for name in own_questions(asking) if api_key_of(name) in keys}
    assert {one.case.api_name for one in writes} == names
    unjudged = {
        (one.case.api_name, one.case.version)
        for one in writes
        if one.verdict is CaseVerdict.NOT_JUDGED
    }
    assert unjudged == NOT_JUDGED[run.release]
    assert {one.remark for one in writes if one.verdict is CaseVerdict.AS_KAFKA} == {""}
    quirks = {one.case.name for one in writes if one.verdict is CaseVerdict.QUIRK}
    is_old = run.release.startswith("3.")
    assert quirks == (set() if is_old else {f"Produce {version}, plain" for version in range(3)})
    for name in names:
        ours = [one for one in writes if one.case.api_name == name]
        codes = [one.error_codes for one in ours if one.case.kind is not Kind.UNOFFERED]
        is_off = name == "ConsumerGroupHeartbeat" and bool(unjudged)
        # A share session ends with its connection, which cases may or may not share.
        if name != "ShareAcknowledge":
            assert (frozenset() in codes) is not (name in ALWAYS_AN_ERROR or is_off), name
        found = frozenset().union(*codes) - RETRIABLE
        assert found <= SEEN_CODES.get(name, frozenset()) | {35}, name


def test_writes_are_as_kafka_and_leave_nothing(kafka: tuple[str, str]) -> None:
    release, address = kafka
    before = told(address)
    asking = Asking(release, own=own_name())
    check(conform(address, asking, timeout=SECONDS), address, asking)
    assert told(address) == before


@pytest.mark.parametrize("share", [3, 10, 60, 150, 250, 1000])
def test_a_run_that_is_interrupted_leaves_nothing(kafka: tuple[str, str], share: int) -> None:
    release, address = kafka
    before = told(address)
    apis = frozenset((0, 8, 11, 14, 19, 20, 22, 24, 28, 37, 42, 68))
    asking = Asking(release, apis, own=own_name())
    with contextlib.suppress(StoppedError):
        conform(address, asking, timeout=SECONDS, watch=stop_after(share))
    assert told(address) == before
    with Broker.connect(address) as asked:
        form = asked.call("ListTransactions", {}).to_json() or {}
    states = {
        one["transactionState"]
        for one in form["transactionStates"]
        if one["transactionalId"].startswith(PREFIX)
    }
    assert states <= {"Empty", "CompleteAbort"}


@pytest.mark.parametrize("release", VERSIONS)
def test_a_cluster_that_nobody_needs_is_changed_as_kafka_does(release: str, tmp_path: Path) -> None:
    with broker(release, tmp_path, WITH_ACLS) as address:
        asking = Asking(release, own=own_name(), disposable=True)
        check(conform(address, asking, timeout=SECONDS), address, asking)
        assert set(write_questions("")) < {*own_questions(asking)}
        # Changed configurations remain, as docs/conformance.md states.
        users = [one["user"] for one in told(address)["DescribeUserScramCredentials"]["results"]]
        assert users == [asking.own]


@contextlib.contextmanager
def of_two_nodes(release: str, directory: Path) -> Iterator[tuple[str, str]]:
    """Start a broker that is also the controller, and a second broker; yield their addresses."""
    first = free_ports(3)
    one, two, controller = (f"{LOOPBACK}:{first + at}" for at in range(3))
    common = {"controller.quorum.voters": f"1@{controller}", CLUSTER_ID: new_id()}
    listeners = f"PLAINTEXT://{one},CONTROLLER://{controller}"
    second = {"process.roles": "broker", "node.id": "2", "listeners": f"PLAINTEXT://{two}"}
    with (
        broker(release, directory / "1", {**common, "listeners": listeners}),
        broker(release, directory / "2", {**common, **second}),
    ):
        yield one, two


def test_in_a_cluster_requests_go_to_leaders_and_coordinators(tmp_path: Path) -> None:
    release = VERSIONS[-1]
    with of_two_nodes(release, tmp_path) as addresses:
        for address in addresses:
            asking = Asking(release, own=own_name())
            run = conform(address, asking, timeout=SECONDS)
            check(run, address, asking)
            codes = {code for one in run.results for code in one.error_codes if one.case.writes}
            assert not codes & {NOT_LEADER, NOT_COORDINATOR}
