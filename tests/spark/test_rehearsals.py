"""Captures from rehearsing taps show refused clients and requests, and which clients came back."""

from __future__ import annotations

import dataclasses
import json
from html import unescape
from typing import TYPE_CHECKING, NamedTuple

import pytest

from flexwire.capture.files.comments import (
    RehearsedRequest,
    rehearsal_comment,
    rehearsing_comment,
    sampling_comment,
)
from flexwire.capture.files.pcapng import PcapngWriter
from flexwire.facts.rehearsals import RefusedClient
from flexwire.spark.analyze import analyze
from flexwire.survey.rehearsals import RehearsedTraffic, join
from tests.spark.traffic import START_US, framed, made, request, response

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

RELEASE = "4.4.0"
BROKER = ("10.0.0.1", 9092)


class Sent(NamedTuple):
    """A client's request: its time, its version, and the tap's reaction."""

    at_s: int
    host: str
    client_id: str | None
    name: str
    version: int
    did: str | None = None


def captured(directory: Path, prefix: str, sent: list[Sent], *comments: bytes) -> None:
    """Write each request on its own connection. Requests that were not refused are answered."""
    with PcapngWriter(directory, prefix=prefix, comment=comments) as writer:
        for number, one in enumerate(sent):
            connection = writer.open_connection((one.host, 50000 + number), BROKER)
            body = made(f"{one.name}Request")
            at_us = START_US + one.at_s * 1_000_000
            named = (f"{one.name} v{one.version}", one.client_id)
            connection.send(
                "request",
                framed(request(body, one.version, number, client_id=one.client_id)),
                at_us,
                comments=[rehearsal_comment(number, RELEASE, one.did, *named)] if one.did else [],
            )
            if one.did not in {"closed", "unsupported"}:
                body = made(f"{one.name}Response")
                answer = framed(response(body, one.version, number))
                connection.send("response", answer, at_us + 1000)
            connection.close()


SENT = [
    Sent(0, "10.0.0.7", "billing", "ApiVersions", 3, "narrowed"),
    Sent(1, "10.0.0.7", "billing", "Metadata", 0, "closed"),
    Sent(2, "10.0.0.7", "billing", "Metadata", 0, "closed"),
    Sent(3, "10.0.0.7", "billing", "ListOffsets", 0, "closed"),
    # The same client id at a different address is a different client, so it is not counted.
    Sent(3, "10.0.0.8", "billing", "Metadata", 0, "closed"),
    Sent(3, "10.0.0.8", None, "Metadata", 0, "closed"),
    Sent(4, "10.0.0.9", "other", "ApiVersions", 5, "unsupported"),
    Sent(4, "10.0.0.9", "other", "ApiVersions", 4, "sent on"),
]
LATER = [
    # An answer before the last refusal proves nothing, and neither does an answer from another API.
    Sent(2, "10.0.0.7", "billing", "Metadata", 12),
    Sent(5, "10.0.0.7", "billing", "Heartbeat", 4),
    Sent(7, "10.0.0.7", "billing", "Metadata", 1),
    Sent(6, "10.0.0.7", "billing", "Metadata", 12),
    Sent(6, "10.0.0.8", None, "Heartbeat", 4),
]


def us(at_s: int) -> int:
    return START_US + at_s * 1_000_000


@pytest.mark.spark
def test_who_was_refused_and_who_came_back(spark: SparkSession, tmp_path: Path) -> None:
    says = rehearsing_comment(RELEASE)
    captured(tmp_path / "in", "first", SENT, sampling_comment(0.5), says)
    captured(tmp_path / "in", "second", LATER, says)
    # The comments of a file that does not declare a rehearsal are not read.
    captured(tmp_path / "in", "third", [Sent(9, "10.0.0.5", "x", "Metadata", 0, "closed")])
    done = analyze([tmp_path / "in"], tmp_path / "out", spark=spark)
    rehearsal = done.facts.rehearsal
    assert rehearsal is not None
    assert dataclasses.replace(rehearsal, refused=()) == type(rehearsal)(
        (RELEASE,), 2, narrowed=2, sent_on=1, unsupported=1, closed=5, refused_count=3
    )
    assert rehearsal.refused == (
        RefusedClient(
            RELEASE, "10.0.0.7", "billing", ("Metadata v0", "ListOffsets v0"), 3, us(1), us(3),
            us(6), "Metadata v12", returned=True,
        ),
        RefusedClient(RELEASE, "10.0.0.8", "billing", ("Metadata v0",), 1, us(3), us(3)),
        RefusedClient(
            RELEASE, "10.0.0.8", None, ("Metadata v0",), 1, us(3), us(3), returned=True
        ),
    )  # fmt: skip
    assert rehearsal.outcomes == (1, 1, 1)
    assert rehearsal.sentence in done.notes
    page = unescape(done.report.read_text().replace("<wbr>", ""))
    section = page[page.index('id="rehearsed"') :]
    section = section[: section.index("</section>")]
    assert f"{rehearsal.sentence} {rehearsal.outcome_sentence}" in section
    assert "From 2 ApiVersions responses, the tap removed versions" in section
    for told in ("Metadata v12 was answered", "came back", "not seen again", "10.0.0.8"):
        assert told in section
    assert json.loads((tmp_path / "out/facts.json").read_text())["rehearsal"]["closed"] == 5


@pytest.mark.spark
def test_key_logs_change_nothing_of_it(spark: SparkSession, tmp_path: Path) -> None:
    captured(tmp_path / "in", "first", SENT[1:2], rehearsing_comment(RELEASE))
    (tmp_path / "keys.log").write_text("# no secret\n", encoding="ascii")
    keys = [tmp_path / "keys.log"]
    done = analyze([tmp_path / "in"], tmp_path / "out", spark=spark, keys=keys)
    assert done.facts.rehearsal is not None
    assert [one.client_id for one in done.facts.rehearsal.refused] == ["billing"]


@pytest.mark.spark
def test_a_rehearsal_that_refused_nobody_is_said(spark: SparkSession, tmp_path: Path) -> None:
    captured(tmp_path / "in", "first", SENT[:1], rehearsing_comment(RELEASE))
    done = analyze([tmp_path / "in"], tmp_path / "out", spark=spark)
    assert done.facts.rehearsal is not None
    assert done.facts.rehearsal.sentence.endswith("4.4.0. The tap refused no client.")
    assert 'id="refused-table"' not in done.report.read_text()


def test_very_many_clients_of_a_file_are_counted_and_not_told_apart() -> None:
    traffic = RehearsedTraffic()
    for number in [*range(5), *range(5)]:
        closed = RehearsedRequest(
            number, "10.0.0.7:1", "b:1", 0, RELEASE, "closed", "Produce v2", str(number)
        )
        traffic.see(closed, most=3)
    assert (len(traffic.refused), traffic.beyond, traffic.did["closed"]) == (3, 4, 10)
    # The sum does not depend on the order.
    assert join([traffic, RehearsedTraffic()]) == join([RehearsedTraffic(), traffic])
