"""Send the requests of clients that are no longer in use, over plain sockets.

The clients connect to an old broker. Each client produces a different kind of evidence for an
audit.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from flexwire.demo.clients.raw import RawConnection
from flexwire.demo.outcome import OutcomeRecorder
from flexwire.errors import FlexwireError

if TYPE_CHECKING:
    from flexwire.demo.outcome import ClientOutcome

_PART = "stand-ins for old clients of an old broker"
_FETCH, _OFFSET_FETCH, _SASL_HANDSHAKE, _API_VERSIONS = 1, 9, 17, 18
_FETCH_BODY: dict[str, Any] = {
    "replicaId": -1,
    "maxWaitMs": 10,
    "minBytes": 1,
    "maxBytes": 1 << 20,
    "topics": [],
}


def run(bootstrap: str) -> ClientOutcome:
    """Act as four old clients: two reach a broker limit, and two are old versions of librdkafka."""
    ledger = OutcomeRecorder("stand-ins", version("flexwire"), part=_PART)
    address = bootstrap.partition(",")[0]
    try:
        _reach_the_broker_s_limit(ledger, address)
        _be_refused(ledger, address)
        _play_librdkafka(ledger, address, "kerberized-loader", "2.3.0")
        _play_librdkafka(ledger, address, "forgotten-cron", "1.6.0")
    except (FlexwireError, OSError) as error:
        return ledger.outcome(error=f"{type(error).__name__}: {error}")
    return ledger.outcome()


def _reach_the_broker_s_limit(ledger: OutcomeRecorder, address: str) -> None:
    with RawConnection(address, ledger.client_id("edge-collector")) as connection:
        offered = connection.request(_API_VERSIONS, "ApiVersions", 0, {})["apiKeys"]
        highest = next(api["maxVersion"] for api in offered if api["apiKey"] == _FETCH)
        connection.request(_FETCH, "Fetch", highest, _FETCH_BODY)
    ledger.step(f"fetched with version {highest}, the highest that the broker offered")


def _be_refused(ledger: OutcomeRecorder, address: str) -> None:
    with RawConnection(address, ledger.client_id("offsets-in-zookeeper")) as connection:
        try:
            connection.request(_OFFSET_FETCH, "OffsetFetch", 0, {"groupId": "tape", "topics": []})
        except (FlexwireError, ConnectionError):
            ledger.step("requested offsets in version 0, and the broker closed the connection")
        else:
            ledger.expect(truth=False, failure="the old broker answered OffsetFetch v0")


def _play_librdkafka(ledger: OutcomeRecorder, address: str, client_id: str, software: str) -> None:
    named = {"clientSoftwareName": "librdkafka", "clientSoftwareVersion": software}
    with RawConnection(address, ledger.client_id(client_id)) as connection:
        connection.request(_API_VERSIONS, "ApiVersions", 3, named)
        connection.request(_SASL_HANDSHAKE, "SaslHandshake", 1, {"mechanism": "GSSAPI"})
    ledger.step(f"began a Kerberos login as librdkafka does: {software}")
