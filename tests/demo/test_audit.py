"""The demo's audit of real releases finds each kind of evidence for at least one client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexwire.demo.clients import OLD_CLIENTS
from flexwire.demo.run import RELEASES, DemoOutcome, record_traffic
from flexwire.spark.analyze import Analysis, analyze

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flexwire.parties import AuditVerdict

pytestmark = pytest.mark.spark

FIRST, PATCHED = "4.0.0", "4.0.2"
_OLD = {
    ("offsets-in-zookeeper", "OffsetFetch", 0): "broke",
    ("plant-floor", "Fetch", 3): "will break",
    ("plant-floor", "Produce", 2): "will break",
    ("museum-piece", "ListOffsets", 0): "will break",
    ("edge-collector", "Fetch", 3): "cannot say",
    ("forgotten-cron", None, None): "documented as unsupported",
}


@pytest.fixture(scope="module")
def outcome(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DemoOutcome:
    directory = tmp_path_factory.mktemp("audited-demo")
    traffic = record_traffic(directory / "capture")
    analysis = analyze(traffic.captures, directory, spark=spark, releases=RELEASES)
    return DemoOutcome(traffic, analysis)


def _found(
    analysis: Analysis, release: str
) -> dict[tuple[str | None, str | None, int | None], set[AuditVerdict]]:
    found: dict[tuple[str | None, str | None, int | None], set[AuditVerdict]] = {}
    for one in analysis.facts.audit.findings:
        if one.release == release and one.verdict != "nothing seen against it":
            what = (one.client.client_id, one.api_name, one.version)
            found.setdefault(what, set()).add(one.verdict)
    return found


def test_nothing_went_wrong_in_the_demo(outcome: DemoOutcome) -> None:
    assert outcome.failures == []
    stand_ins = [one for one in outcome.traffic.clients if one.client == "stand-ins"]
    assert len(stand_ins) == len(OLD_CLIENTS)
    assert len(stand_ins[0].did) == 4


def test_each_kind_of_evidence_has_its_client(outcome: DemoOutcome) -> None:
    found = _found(outcome.analysis, PATCHED)
    assert found == {what: {verdict} for what, verdict in _OLD.items()}


def test_the_first_release_refuses_what_its_patch_reads_again(outcome: DemoOutcome) -> None:
    first, patched = (_found(outcome.analysis, one) for one in (FIRST, PATCHED))
    assert first.pop(("plant-floor", "JoinGroup", 1)) == {"will break"}
    assert first.pop(("kerberized-loader", None, None)) == {"known to break"}
    first["forgotten-cron", None, None].remove("known to break")
    assert first == patched


def test_every_other_client_of_the_demo_has_nothing_against_it(outcome: DemoOutcome) -> None:
    everybody = {name for one in outcome.traffic.clients for name in one.client_ids}
    accused = {client for client, _, _ in _OLD} - {"forgotten-cron"}
    free = {
        str(one.client.client_id)
        for one in outcome.analysis.facts.audit.findings
        if (one.release, one.verdict) == (PATCHED, "nothing seen against it")
    }
    assert free == everybody - accused


def test_a_finding_names_whom_to_ask(outcome: DemoOutcome) -> None:
    found = outcome.analysis.facts.audit.findings
    plant = next(one for one in found if one.client.client_id == "plant-floor")
    assert (plant.groups, plant.topics) == (("plant-floor-readers",), ("gauges",))
    assert plant.last_accepting_release == "3.9.2"
    assert plant.client.address == "127.0.0.1"
