"""Find and replace the addresses that responses advertise, as their specs define them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

from flexwire.client.notation import HIGHEST_PORT, HostPort
from flexwire.codec import message
from flexwire.errors import DecodeError
from flexwire.protocol import RequestFrame, parse_response
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.schema.resolve import resolve
from flexwire.schema.spec import MessageType
from flexwire.tap.limits import MOST_WALKED, beginning
from flexwire.wire.field_spans import BoundedReader, Replacement, field_spans, replace_fields
from flexwire.wire.schema import Presence, struct_of
from flexwire.wire.types import INT32, String

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import MessageSpec
    from flexwire.wire.field_spans import FieldSpan, Path
    from flexwire.wire.schema import Field, Schema


@dataclass(frozen=True, slots=True)
class AddressFields:
    """Fields that form an advertised address: the path to their structure, and both names.

    The names are attribute names. The path is empty if the fields are in the message itself.
    """

    path: tuple[str, ...]
    host: str
    port: str

    def __str__(self) -> str:
        return ".".join((*self.path, f"{self.host}/{self.port}"))


def advertised_address(host: str | None, port: int) -> HostPort | None:
    """Return an advertised address, or None for an empty address ("" and -1, as in errors)."""
    return HostPort(host, port) if host and 0 < port <= HIGHEST_PORT else None


def address_fields(spec: MessageSpec, version: int) -> tuple[AddressFields, ...]:
    """Return every place in which a response advertises an address to clients.

    Such a place is a string field whose name ends in the word "host", directly followed, among the
    fields of the version, by an int32 field whose name ends in the word "port". Both fields are in
    the message itself or in one of its structures, which may be tagged. The int32 is typical of
    brokers' addresses: addresses of controllers' listeners and of Streams applications have uint16
    ports, and a client's host in a group's description or an ACL has no port. Requests contain no
    such places for clients, because only brokers use the addresses in requests.
    """
    if spec.type is not MessageType.RESPONSE:
        return ()
    return tuple(_places(resolve(spec, version), ()))


def _places(schema: Schema, path: tuple[str, ...]) -> Iterator[AddressFields]:
    present = [field for field in schema.fields if field.presence is not Presence.ABSENT]
    for host, port in pairwise(present):
        if _is_host(host) and _is_port(port):
            yield AddressFields(path, host.attribute, port.attribute)
    for field in present:
        inner = struct_of(field.type)
        if inner is not None:
            yield from _places(inner, (*path, field.attribute))


def _is_host(field: Field) -> bool:
    return isinstance(field.type, String) and field.attribute.rpartition("_")[2] == "host"


def _is_port(field: Field) -> bool:
    return field.type == INT32 and field.attribute.rpartition("_")[2] == "port"


@per_catalog
@lru_cache(maxsize=4096)
def response_address_fields(message_name: str, version: int) -> tuple[AddressFields, ...]:
    """Return the result of `address_fields` for a bundled response.

    For a version that is not in the catalog, the fields of the newest version determine whether the
    response is searched. Decoding then reports that the response cannot be decoded.
    """
    entry = catalog().entry(message_name)
    nearest = version if version in entry.versions else entry.versions.highest
    return address_fields(entry.spec(nearest), nearest)


Route = Callable[[HostPort], HostPort]


def may_advertise(request: RequestFrame) -> bool:
    """Return whether the response to this request may contain an address."""
    name = request.message_name.removesuffix("Request") + "Response"
    return bool(response_address_fields(name, request.api_version))


def rewrite_addresses(payload: bytes, request: RequestFrame, route: Route) -> bytes | None:
    """Return the response's payload with each address replaced by the result of ``route``.

    Returns None if no address changes, so that the payload is forwarded unchanged. All other bytes
    remain the same, and the response is read only up to its last address. Raises `DecodeError` if
    the response cannot be read up to that address, or if this takes more than `MOST_WALKED` steps.
    Also raises the errors of `parse_response`.
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
) -> tuple[Schema, tuple[AddressFields, ...], tuple[Path, ...]]:
    places = response_address_fields(name, version)
    paths = [
        (*place.path, name_of_field)
        for place in places
        for name_of_field in (place.host, place.port)
    ]
    return message(name).definition.schema(version), places, tuple(paths)


def _replaced(
    spans: Iterator[FieldSpan], places: tuple[AddressFields, ...], route: Route
) -> Iterator[Replacement]:
    for _, structure in groupby(spans, key=attrgetter("structure")):
        fields = {span.path: span for span in structure}
        for place in places:
            host = fields.get((*place.path, place.host))
            port = fields.get((*place.path, place.port))
            if host is None or port is None:
                continue
            old = advertised_address(host.value, port.value)
            if old is None or (new := route(old)) == old:
                continue
            yield Replacement(host, new.host)
            yield Replacement(port, new.port)
