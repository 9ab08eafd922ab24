"""Where responses advertise addresses, found from their specs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from flexwire.client.notation import HIGHEST_PORT, HostPort
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.schema.resolve import resolve
from flexwire.schema.spec import MessageType
from flexwire.wire.schema import Presence, struct_of
from flexwire.wire.types import INT32, String

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import MessageSpec
    from flexwire.wire.schema import Field, Schema


@dataclass(frozen=True, slots=True)
class AddressPlace:
    """Fields that together are an advertised address: the path to their structure, and both names.

    Names are attributes; the path is empty where the fields stand in the message itself.
    """

    path: tuple[str, ...]
    host: str
    port: str

    def __str__(self) -> str:
        return ".".join((*self.path, f"{self.host}/{self.port}"))


def address(host: str | None, port: int) -> HostPort | None:
    """Return an advertised address, or None for an empty one ("" and -1, as in errors)."""
    return HostPort(host, port) if host and 0 < port <= HIGHEST_PORT else None


def address_places(spec: MessageSpec, version: int) -> tuple[AddressPlace, ...]:
    """Every place in a response where it tells clients which address to connect to.

    The rule: a string field whose name ends in the word "host", directly followed, among the
    fields that the version has, by an int32 field whose name ends in the word "port"; in the
    message itself or in any of its structures, tagged ones included. The int32 sets brokers
    apart: addresses of controllers' listeners and of Streams applications have uint16 ports, and
    a client's host in a group's description or an ACL has no port. Only responses have such
    places: addresses in requests are between brokers.
    """
    if spec.type is not MessageType.RESPONSE:
        return ()
    return tuple(_places(resolve(spec, version), ()))


def _places(schema: Schema, path: tuple[str, ...]) -> Iterator[AddressPlace]:
    present = [one for one in schema.fields if one.presence is not Presence.ABSENT]
    for host, port in pairwise(present):
        if _is_host(host) and _is_port(port):
            yield AddressPlace(path, host.attribute, port.attribute)
    for one in present:
        inner = struct_of(one.type)
        if inner is not None:
            yield from _places(inner, (*path, one.attribute))


def _is_host(one: Field) -> bool:
    return isinstance(one.type, String) and one.attribute.rpartition("_")[2] == "host"


def _is_port(one: Field) -> bool:
    return one.type == INT32 and one.attribute.rpartition("_")[2] == "port"


@per_catalog
@lru_cache(maxsize=4096)
def response_places(message_name: str, version: int) -> tuple[AddressPlace, ...]:
    """`address_places` of a bundled response.

    For a version that the catalog does not have, the places of the newest one decide whether the
    response is looked into; decoding then says that it cannot be.
    """
    entry = catalog().entry(message_name)
    known = version if version in entry.versions else entry.versions.highest
    return address_places(entry.spec(known), known)
