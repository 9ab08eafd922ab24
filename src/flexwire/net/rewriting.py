"""Replaces advertised addresses in a response, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

from flexwire.codec import message
from flexwire.net.addresses import addresses_in, response_places
from flexwire.net.host_port import HostPort
from flexwire.protocol import RequestFrame, parse_response

Route = Callable[[HostPort], HostPort]


def may_advertise(request: RequestFrame) -> bool:
    """Whether the response to this request has a place for an address."""
    name = request.message_name.removesuffix("Request") + "Response"
    return bool(response_places(name, request.api_version))


def rewrite(payload: bytes, request: RequestFrame, route: Route) -> bytes | None:
    """Give the response's payload with each address replaced by ``route`` of it.

    None when no address changes: the payload then goes on as it is. The header and what follows
    the body stay byte for byte, and the body keeps its unknown tagged fields. Raises what
    `parse_response` and `Message.decode_prefix` raise.
    """
    frame = parse_response(payload, request.api_key, request.api_version)
    version = frame.body_version
    kind = message(frame.message_name)
    body, end = kind.decode_prefix(payload, version, frame.body_offset)
    changed = False
    for address in addresses_in(body, response_places(frame.message_name, version)):
        old = address.value
        if old is None:
            continue
        new = route(old)
        if new != old:
            address.replace(new)
            changed = True
    if not changed:
        return None
    return b"".join((payload[: frame.body_offset], body.encode(version), payload[end:]))
