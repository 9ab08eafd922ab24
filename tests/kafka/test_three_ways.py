"""A TLS cluster's traffic is captured in three ways, which agree except for what each way lacks.

```
clients ──TLS──▶ tap under TLS ──TLS──▶ plain relay, which captures TLS ──▶ broker
                 (its capture)          (its capture, and the broker's key log)   (its request log)
```
"""

from __future__ import annotations

import os
import shutil
import socket
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.answers.chargeback import chargeback
from flexwire.spark.analyze import Analysis, analyze
from flexwire.spark.answers.outputs import open_tables
from flexwire.tap import HostPort, ListenTls, TapSecurity, UpstreamTls
from tests.kafka.secured import COUNT, LOOPBACK, PASSWORD, by_java, by_librdkafka, tapping
from tests.kafka.test_key_logs import AGENT, VERSION
from tests.tls import Authority
from tools.broker import REQUEST_LOG, broker, jars

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.tap import Tap

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

MECHANISM = "PLAIN"
KAFKAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SASL = ("SaslHandshake", "SaslAuthenticate")
ASKED = "ApiVersions"
# If this is set, the three outputs are copied there for inspection.
KEPT = "FLEXWIRE_THREE_WAYS"


@dataclass(frozen=True)
class Ways:
    """The same traffic, analyzed three times; ``tap`` is the analysis of the tap inside TLS."""

    logged: Analysis
    tapped: Analysis
    opened: Analysis
    tap: Tap


@contextmanager
def _secret(authority: Authority, directory: Path) -> Iterator[tuple[Tap, Path]]:
    """Yield a relay that sees only TLS, and the key log of the broker behind it, which logs
    requests.
    """
    certificate, key = authority.certificate([LOOPBACK], name="broker")
    both = directory / "both.pem"
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((LOOPBACK, 0))) for _ in range(3)]
        own, inner, controller = (HostPort(LOOPBACK, one.getsockname()[1]) for one in sockets)
    jars(VERSION)
    (agent,) = AGENT.bring().iterdir()
    secrets = directory / "secrets.log"
    with tapping(own, directory / "relayed") as relay, pytest.MonkeyPatch.context() as patch:
        settings = {
            "listeners": f"CLIENTS://{own},INNER://{inner},CONTROLLER://{controller}",
            "advertised.listeners": f"CLIENTS://{relay.listen_address},INNER://{inner}",
            "controller.quorum.voters": f"1@{controller}",
            "listener.security.protocol.map": "CLIENTS:SASL_SSL,INNER:PLAINTEXT,"
            "CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "INNER",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(both),
            "sasl.enabled.mechanisms": MECHANISM,
            "listener.name.clients.plain.sasl.jaas.config": (
                f'{KAFKAS} username="admin" password="x" user_alice="{PASSWORD}";'
            ),
        }
        patch.setenv("JAVA_TOOL_OPTIONS", f"-javaagent:{agent}={secrets} {REQUEST_LOG}")
        with broker(VERSION, directory / "broker", settings):
            patch.delenv("JAVA_TOOL_OPTIONS")
            yield relay, secrets


@pytest.fixture(scope="module")
def ways(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ways:
    directory = tmp_path_factory.mktemp("ways")
    authority = Authority(directory / "tls")
    ca = authority.path
    security = TapSecurity(ListenTls(*authority.certificate(name="tap")), UpstreamTls(ca))
    with (
        _secret(authority, directory) as (relay, secrets),
        tapping(relay.listen_address, directory / "tapped", security) as tap,
    ):
        at, properties = str(tap.listen_address), directory / "client.properties"
        read = by_librdkafka(at, ca, MECHANISM, "c-")
        read += by_java(at, ca, MECHANISM, "j-", VERSION, properties)
    assert Counter(read) == Counter(f"{who}-{number}" for who in "cj" for number in range(COUNT))
    assert relay.stats.tls > 0
    outs = {name: directory / f"out-{name}" for name in ("logged", "tapped", "opened")}
    log = directory / "broker" / "broker.log"
    ways = Ways(
        analyze([log], outs["logged"], spark=spark, title="By the broker's request log"),
        analyze([directory / "tapped"], outs["tapped"], spark=spark, title="By a tap under TLS"),
        analyze(
            [directory / "relayed"], outs["opened"], keys=[secrets], spark=spark,
            title="By a capture of TLS and a key log",
        ),
        tap,
    )  # fmt: skip
    if (kept := os.environ.get(KEPT)) is not None:
        for name, out in outs.items():
            shutil.rmtree(Path(kept) / name, ignore_errors=True)
            shutil.copytree(out, Path(kept) / name)
    return ways


def tables(spark: SparkSession, done: Analysis) -> AnalysisTables:
    return open_tables(spark, done.output.place.url)


def requests(spark: SparkSession, done: Analysis) -> dict[tuple[Any, ...], Any]:
    """Return the requests of clients (not the cluster's own), by the facts that identify them."""
    of_clients = (
        "client_id = 'rdkafka' or client_id like 'producer-%' or client_id like 'consumer-%'"
    )
    rows = tables(spark, done).frames.where("direction = 'request'").where(of_clients).collect()
    # Two connections of a client may have the same number, and so may two clients of a program.
    found: dict[tuple[Any, ...], Any] = {}
    for one in sorted(rows, key=lambda row: (row.time, row.frame_index)):
        key: tuple[Any, ...]
        key = one.client_id, one.api_name, one.api_version, one.correlation_id
        while key in found:
            key = (*key, "again")
        found[key] = one
    return found


def without(found: dict[tuple[Any, ...], Any], *names: str) -> set[tuple[Any, ...]]:
    return {key for key in found if key[1] not in names}


def test_all_three_have_the_same_requests_but_those_that_no_log_has(
    spark: SparkSession, ways: Ways
) -> None:
    logged, tapped, opened = (
        requests(spark, one) for one in (ways.logged, ways.tapped, ways.opened)
    )
    assert tapped.keys() == opened.keys()
    assert without(logged, ASKED) == without(tapped, *SASL, ASKED)
    assert {"Produce", "Fetch", "JoinGroup", "OffsetCommit"} <= {key[1] for key in logged}
    assert {*SASL, ASKED} <= {key[1] for key in tapped}
    # Requests before the login are not in the log; after it, Kafka's own client sends them again.
    asked = logged.keys() - without(logged, ASKED)
    assert asked < tapped.keys() - without(tapped, ASKED)
    assert not [key for key in asked if key[0] == "rdkafka"]
    assert [key for key in asked if key[0].startswith("consumer-")]


def test_frames_of_both_captures_are_the_same_to_the_byte(spark: SparkSession, ways: Ways) -> None:
    tapped, opened = (requests(spark, one) for one in (ways.tapped, ways.opened))
    sizes = [{key: one.size for key, one in found.items()} for found in (tapped, opened)]
    assert sizes[0] == sizes[1]
    assert all(size > 0 for size in sizes[0].values())
    assert {one.size for one in requests(spark, ways.logged).values()} == {None}


def test_records_are_in_captures_and_their_bytes_in_all_three(
    spark: SparkSession, ways: Ways
) -> None:
    counts = {
        name: tables(spark, one).records.where("topic = 'spoken'").count()
        for name, one in (
            ("logged", ways.logged), ("tapped", ways.tapped), ("opened", ways.opened),
        )
    }  # fmt: skip
    # Each record was produced once, and fetched at least once.
    assert counts["logged"] == 0
    assert counts["tapped"] == counts["opened"] >= 4 * COUNT

    def charged(done: Analysis) -> set[tuple[Any, ...]]:
        rows = chargeback(tables(spark, done)).where("topic = 'spoken'").collect()
        return {(one.client_id, one.requests, one.sent_bytes, one.received_bytes) for one in rows}

    assert charged(ways.logged) == charged(ways.tapped) == charged(ways.opened) != set()


def test_the_log_alone_knows_the_principal_and_captures_alone_the_login(
    spark: SparkSession, ways: Ways
) -> None:
    def principals(done: Analysis) -> set[str | None]:
        rows = chargeback(tables(spark, done)).where("topic = 'spoken'").collect()
        return {one.principal for one in rows}

    assert principals(ways.logged) == {"User:alice"}
    assert principals(ways.tapped) == principals(ways.opened) == {None}
    for done in (ways.tapped, ways.opened):
        logins = [one for key, one in requests(spark, done).items() if key[1] == SASL[1]]
        assert logins
        assert all(one.withheld_credentials for one in logins)
    # The report of the tap shows nothing that TLS hid, because even its capture contains no such
    # data.
    assert not any(PASSWORD.encode() in path.read_bytes() for path in ways.tap.capture_paths)


def test_each_report_says_what_it_cannot_show(ways: Ways) -> None:
    logged, tapped, opened = (
        one.report.read_text() for one in (ways.logged, ways.tapped, ways.opened)
    )
    assert "A request log does not contain frame sizes" in logged
    assert "A request log does not contain" not in tapped + opened
    assert ways.opened.facts.tls is not None
    assert (ways.opened.facts.tls.opened, ways.logged.facts.tls, ways.tapped.facts.tls) == (
        ways.tap.stats.connections, None, None,
    )  # fmt: skip
