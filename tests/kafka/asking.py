"""Ask a broker about its groups and transactions in Kafka's protocol."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any

from flexwire.codec import message
from flexwire.protocol.headers import request_header_version, response_header_version
from flexwire.schema.catalog import catalog

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_WAITING = 120


def ask(
    address: str, api: str, release: str, most: int | None = None, **form: Any
) -> dict[str, Any]:
    """Send a request in a release's newest version, and return the response as JSON.

    ``most`` limits the version.
    """
    request, response = message(f"{api}Request"), message(f"{api}Response")
    version = catalog().entry(f"{api}Request").releases[catalog().release(release)].highest
    version = version if most is None else min(version, most)
    api_key = catalog().entry(f"{api}Request").api_key
    assert api_key is not None
    host, port = address.split(":")
    header = message("RequestHeader")(
        request_api_key=api_key, request_api_version=version, correlation_id=1, client_id="asks"
    )
    head = header.encode(request_header_version(api_key, version))
    payload = head + request.from_json(form, version).encode(version)
    with socket.create_connection((host, int(port)), 60) as broker:
        broker.sendall(len(payload).to_bytes(4, "big") + payload)
        stream = broker.makefile("rb")
        data = stream.read(int.from_bytes(stream.read(4), "big"))
    _, start = message("ResponseHeader").decode_prefix(
        data, response_header_version(api_key, version), 0
    )
    return response.decode(data[start:], version).to_json(version)


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until a broker has done something by itself; after the limit, fail with ``what``."""
    end = time.monotonic() + MOST_WAITING
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.2)
