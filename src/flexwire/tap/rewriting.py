"""Replaces advertised addresses in a response, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from flexwire.client.notation import HostPort
from flexwire.codec import message
from flexwire.errors import DecodeError
from flexwire.protocol import RequestFrame, parse_response
from flexwire.schema.catalog import per_catalog
from flexwire.tap.addresses import address, response_places
from flexwire.tap.limits import MOST_WALKED, beginning
from flexwire.wire.field_spans import BoundedReader, Replacement, field_spans, replace_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.tap.addresses import AddressPlace
    from flexwire.wire.field_spans import FieldSpan, Path
    from flexwire.wire.schema import Schema

Route = Callable[[HostPort], HostPort]


def may_advertise(request: RequestFrame) -> bool:
    """Return whether the response to this request has a place for an address."""
    name = request.message_name.removesuffix("Request") + "Response"
    return bool(response_places(name, request.api_version))


def rewrite(payload: bytes, request: RequestFrame, route: Route) -> bytes | None:
    """Return the response's payload with each address replaced by ``route`` of it.

    None when no address changes: the payload then goes on as it is. Every other byte stays, and the
    response is read only up to its last address. Raises `DecodeError` where it cannot be read until
    there, or only in more than `MOST_WALKED` steps, and what `parse_response` raises.
    """
    frame = parse_response(beginning(payload), request.api_key, request.api_version)
    schema, places, paths = _advertised(frame.message_name, frame.body_version)
    reader = BoundedReader(payload, frame.body_offset, MOST_WALKED)
    try:
        replaced = list(_replaced(field_spans(schema, reader, paths), places, route))
    except DecodeError as error:
        error.message, error.version = frame.message_name, frame.body_version
        raise
    return replace_fields(payload, replaced) if replaced else None


@per_catalog
@lru_cache(maxsize=1024)
def _advertised(
    name: str, version: int
) -> tuple[Schema, tuple[AddressPlace, ...], tuple[Path, ...]]:
    places = response_places(name, version)
    paths = [(*place.path, one) for place in places for one in (place.host, place.port)]
    return message(name).definition.schema(version), places, tuple(paths)


def _replaced(
    spans: Iterator[FieldSpan], places: tuple[AddressPlace, ...], route: Route
) -> Iterator[Replacement]:
    for _, found in groupby(spans, key=attrgetter("structure")):
        fields = {span.path: span for span in found}
        for place in places:
            host = fields.get((*place.path, place.host))
            port = fields.get((*place.path, place.port))
            if host is None or port is None:
                continue
            old = address(host.value, port.value)
            if old is None or (new := route(old)) == old:
                continue
            yield Replacement(host, new.host)
            yield Replacement(port, new.port)
