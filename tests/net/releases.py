"""Small brokers that offer, read and refuse the versions of a release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.codec import message
from flexwire.protocol.audit.evidence import offered_versions, role_of, stable_versions
from flexwire.protocol.headers import UNSUPPORTED_VERSION
from flexwire.schema.catalog import catalog
from tests.net.broker import Broker
from tests.protocol.payloads import make, request_payload, response_payload

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.protocol import RequestFrame

PRODUCE, API_VERSIONS = 0, 18
REAL, OLDER, NEWER = "3.9.2", "4.0.2", "4.4.0"


def versions_list(release: str, **fields: Any) -> Any:
    """Return the release's ApiVersions response, with all optional facts about a cluster."""
    kind: Any = message("ApiVersionsResponse")
    keys = [key for key in catalog().api_keys() if role_of({key}) == "client"]
    offers = [(key, offered_versions(key, release)) for key in keys]
    return kind.of(
        api_keys=[
            {"api_key": key, "min_version": one.lowest, "max_version": one.highest}
            for key, one in offers
            if one
        ],
        **fields,
    )


FEATURES: dict[str, Any] = {
    "throttle_time_ms": 5,
    "supported_features": [{"name": "metadata.version", "min_version": 1, "max_version": 21}],
    "finalized_features_epoch": 44,
    "finalized_features": [
        {"name": "metadata.version", "max_version_level": 21, "min_version_level": 21}
    ],
}


def versions_answer(release: str, request: RequestFrame) -> bytes:
    """Return the release's answer to a request for its list of versions."""
    version, told = request.api_version, request.correlation_id
    own = stable_versions(API_VERSIONS, release)
    if version in own:
        fields = {name: FEATURES[name] for name in FEATURES if version >= 3 or name[0] == "t"}
        body = versions_list(release, **(fields if version else {}))
        return response_payload(API_VERSIONS, version, body, correlation_id=told)
    kind: Any = message("ApiVersionsResponse")
    only = {"api_key": API_VERSIONS, "min_version": own.lowest, "max_version": own.highest}
    body = kind.of(error_code=UNSUPPORTED_VERSION, api_keys=[only])
    return response_payload(API_VERSIONS, version, body, correlation_id=told, body_version=0)


def broker_of(release: str, otherwise: Callable[[RequestFrame, bytes], bytes | None]) -> Broker:
    """Return a broker of a release, which closes the connection on requests that it does not read.

    ``otherwise`` answers all other requests.
    """

    def answer(request: RequestFrame, payload: bytes) -> bytes | None:
        if request.api_key == API_VERSIONS:
            return versions_answer(release, request)
        if request.api_version not in stable_versions(request.api_key, release):
            raise ConnectionError("the release does not read it")
        return otherwise(request, payload)

    return Broker(answer)


def asks(version: int, correlation_id: int = 7, client_id: str = "tests") -> bytes:
    """Return a request for the list of versions."""
    told = {"client_software_name": "tests", "client_software_version": "1"}
    body = make("ApiVersionsRequest", **(told if version >= 3 else {}))
    known = version if version in catalog().entry("ApiVersionsRequest").versions else 5
    return request_payload(
        API_VERSIONS,
        version,
        body.encode(known),
        correlation_id=correlation_id,
        client_id=client_id,
    )


def produce(version: int, correlation_id: int = 7, acks: int = -1) -> bytes:
    body = make("ProduceRequest", acks=acks)
    return request_payload(PRODUCE, version, body, correlation_id=correlation_id)
