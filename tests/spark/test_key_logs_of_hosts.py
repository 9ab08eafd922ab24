"""Captures from several hosts with TLS and key logs produce the same tables as plain connections.

Every connection is in the captures of two hosts, and each host misses packets that the other host
captured. The connections are divided among tasks twice: to decrypt them, and to survey the result.
"""

from __future__ import annotations

import random
import ssl
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.spark import share_job
from flexwire.spark.analyze import analyze
from flexwire.survey.survey import AnalysisRequest
from flexwire.wire.segment_layout import ACK, FIN
from tests.capture.traffic import enhanced, framed, interface, section
from tests.spark.equality import tables_of
from tests.spark.traffic import made, nested, request, response
from tests.tls import Authority
from tests.tls_streams import NEAR, contexts, converse, packets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.tls_streams import Flight

pytestmark = pytest.mark.spark
HOSTS = 3
VERSION = 12  # of Metadata
FARE = (("request", FIN | ACK), ("response", FIN | ACK), ("request", ACK))
# Which connections use TLS, and their ports. The last connections reuse the ports of other
# connections.
KINDS = ["plain", "tls", "tls", "unknown", "plain", "tls", "unknown", "tls", "plain", "tls"]
PORTS = [*range(50_000, 50_008), 50_001, 50_004]


def exchanges(number: int) -> list[Flight]:
    """Return Metadata for topics with long names, so that each response spans several packets."""
    chosen = random.Random(number)
    sent: list[Flight] = []
    for at in range(25):
        topics = [
            nested("MetadataResponse", "MetadataResponseTopic", name="t" * chosen.randrange(200))
            for _ in range(chosen.randrange(20))
        ]
        asked = request(made("MetadataRequest"), VERSION, at)
        answer = response(made("MetadataResponse", topics=topics), VERSION, at)
        sent += [("request", framed(asked)), ("response", framed(answer))]
    return sent


class Hosts:
    """The packets of all connections with their times, and the packets that each host captures."""

    def __init__(self, root: Path) -> None:
        authority = Authority(root / "authority")
        self.keys = root / "keys.log"
        logged = contexts(authority, self.keys, ssl.TLSVersion.TLSv1_3)
        silent = contexts(authority, None, ssl.TLSVersion.TLSv1_3)
        unknown = {
            number: converse(*silent, exchanges(number))[0].flights
            for number, kind in enumerate(KINDS)
            if kind == "unknown"
        }
        self.root = root
        self.sent: dict[str, list[tuple[int, int, bytes]]] = {"tls": [], "plain": []}
        for kind, sent in self.sent.items():
            talks = []
            for number, of in enumerate(KINDS):
                flights = unknown.get(number) or exchanges(number)
                if of == kind == "tls":
                    flights = converse(*logged, flights)[0].flights
                near = NEAR._replace(port=PORTS[number])
                start = 1_000 + number * 3_000_000
                talks.append(packets(flights, seed=number, near=near, start=start, ending=FARE))
            sent.extend(self._in_turn(talks))

    @staticmethod
    def _in_turn(talks: list[list[bytes]]) -> Iterator[tuple[int, int, bytes]]:
        """Yield the packets a millisecond apart. Connections on reused ports come last."""
        source, time = random.Random(8), 1_700_000_000_000_000
        early = [*enumerate(talks)][: len({*PORTS})]
        for some in (early, [*enumerate(talks)][len(early) :]):
            # The first packet belongs to a plain connection.
            while left := [(number, talk) for number, talk in some if talk]:
                number, talk = left[0] if time % 1_000_000 == 0 else source.choice(left)
                time += 1_000
                yield time, number, talk.pop(0)

    def whole(self) -> Path:
        """Write one capture that contains every packet of the plain connections."""
        path = self.root / "whole.pcapng"
        self._write(path, [(time, packet) for time, _, packet in self.sent["plain"]])
        return path

    def captures(self, kind: str) -> Path:
        """Write a capture of each host: every packet is in one or both of two hosts' captures."""
        source = random.Random(9)
        seen: list[list[tuple[int, bytes]]] = [[] for _ in range(HOSTS)]
        for time, number, packet in self.sent[kind]:
            first, second = number % HOSTS, (number + 1) % HOSTS
            lacks = source.choice([first, second, None, None, None, None])
            for host in {first, second} - {lacks}:
                # One host's clock is ahead.
                seen[host].append((time + 70 * host, packet))
        directory = self.root / f"captures-{kind}"
        directory.mkdir()
        for host, some in enumerate(seen):
            self._write(directory / f"host{host}.pcapng", some)
        return directory

    @staticmethod
    def _write(path: Path, found: list[tuple[int, bytes]]) -> None:
        blocks = [enhanced(packet, time) for time, packet in found]
        path.write_bytes(b"".join([section(), interface(), *blocks]))


def rows_of(out: Path) -> dict[str, list[str]]:
    """Return the rows of frames and connections, without the names of their files."""
    tables, found = tables_of(out), {}
    for name in ("frames", "connections"):
        rows = [{key: row[key] for key in row if key != "source"} for row in tables[name]]
        found[name] = sorted(map(repr, rows))
    return found


def frames_of(out: Path) -> list[tuple[Any, ...]]:
    columns = ("connection", "direction", "frame_index", "size", "api_key", "correlation_id",
               "answered", "outcome")  # fmt: skip
    rows = tables_of(out)["frames"]
    return sorted(tuple(map(repr, map(row.get, columns))) for row in rows)


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[int]]:
    """Return a function that sets the number of shares, and returns the surveys' shares."""
    ran: list[int] = []
    survey_shares = share_job.survey_shares

    def noted(spark: SparkSession, asked: AnalysisRequest, shares: int, *others: Any) -> Any:
        ran.append(shares)
        return survey_shares(spark, asked, shares, *others)

    monkeypatch.setattr("flexwire.spark.analyze.range_bytes_for", lambda *_: 100_000)
    monkeypatch.setattr("flexwire.spark.capture_job.LEAST_BYTES", 0)
    monkeypatch.setattr("flexwire.spark.capture_job.survey_shares", noted)
    monkeypatch.setattr(
        "flexwire.spark.options.AnalysisRequest", partial(AnalysisRequest, chunk_bytes=8_192)
    )

    def divide(shares: int) -> list[int]:
        monkeypatch.setattr("flexwire.spark.analyze.count_shares", lambda *_: shares)
        return ran

    return divide


@pytest.mark.long
def test_two_hosts_together_have_what_a_whole_capture_has(
    spark: SparkSession, tmp_path: Path, divided: Callable[[int], list[int]]
) -> None:
    hosts = Hosts(tmp_path)
    captures, found = hosts.captures("tls"), {}
    for shares in (1, 3):
        ran = divided(shares)
        out = tmp_path / f"out{shares}"
        done = analyze([captures], out, spark=spark, keys=[hosts.keys])
        assert done.facts.tls is not None
        told = done.facts.tls
        assert (told.opened, told.partly_opened, told.not_opened) == (5, 0, 2)
        assert done.facts.totals.frames == 8 * 50
        found[shares] = rows_of(out)
    assert ran == [3]
    assert found[1] == found[3]
    # The same connections without TLS, merged and captured as a whole.
    for name, paths in (("merged", hosts.captures("plain")), ("whole", hosts.whole())):
        analyze([paths], tmp_path / name, spark=spark)
        assert frames_of(tmp_path / name) == frames_of(tmp_path / "out3"), name
