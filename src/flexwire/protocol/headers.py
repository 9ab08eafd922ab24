"""Which version of the request or response header stands before a message.

Released Kafka decides: a flexible version of a request has request header 2 and the others 1; a
flexible version of a response has response header 1 and the others 0. The exceptions stand in one
table. Flexible ranges are open-ended, so a version above the catalog has a header version too.

The text of KIP-482 numbers its headers otherwise, and knows no exceptions; `Numbering` selects it.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Final

from flexwire.codec import Message, message, message_of
from flexwire.errors import UnknownMessageError
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.schema.parse import parse_spec
from flexwire.schema.spec import MessageType
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterator

# (message, its versions) → header version.
_EXCEPTIONS: Final = {
    # The first api a controller ever spoke carried no client id.
    # Source: ApiMessageTypeGenerator, the request header's special case for api key 7.
    ("ControlledShutdownRequest", Versions(0, 0)): 0,
    # A client that asks with a version the broker does not have must be able to read the answer,
    # so the header never grew a tag section. Source: KIP-511, KAFKA-9184; api key 18.
    ("ApiVersionsResponse", Versions.ALL): 0,
}

_HEADERS: Final = {MessageType.REQUEST: "RequestHeader", MessageType.RESPONSE: "ResponseHeader"}

# The two headers as the text of KIP-482 has them, "RequestHeader Version 1" and "ResponseHeader
# Version 1". A client id could be null before, and so it still can.
_KIP_482_REQUEST_HEADER: Final = """{
  "type": "header", "name": "RequestHeader", "validVersions": "0-1", "flexibleVersions": "1+",
  "fields": [
    {"name": "RequestApiKey", "type": "int16", "versions": "0+"},
    {"name": "RequestApiVersion", "type": "int16", "versions": "0+"},
    {"name": "CorrelationId", "type": "int32", "versions": "0+"},
    {"name": "ClientId", "type": "string", "versions": "0+", "nullableVersions": "0+"}
  ]
}"""
_KIP_482_RESPONSE_HEADER: Final = """{
  "type": "header", "name": "ResponseHeader", "validVersions": "0-1", "flexibleVersions": "1+",
  "fields": [{"name": "CorrelationId", "type": "int32", "versions": "0+"}]
}"""


class Numbering(Enum):
    """Whose numbers the header versions have: those of released Kafka, or of KIP-482's text.

    In the KIP, header version 1 is that of all flexible versions and 0 that of all others, for
    requests and for responses; the client id of request header 1 is compact.
    """

    KAFKA = "kafka"
    KIP_482 = "kip-482"


def request_header_version(
    api_key: int, version: int, numbering: Numbering = Numbering.KAFKA
) -> int:
    """The version of the request header: 2 with tagged fields, 1 without, 0 without client id.

    Raises `UnknownMessageError` for an api key that no release has, and in KIP-482's numbering for
    the header without client id, which the KIP does not number.

    >>> request_header_version(18, 3), request_header_version(18, 2), request_header_version(7, 0)
    (2, 1, 0)
    >>> request_header_version(18, 3, Numbering.KIP_482)
    1
    """
    flexible = version in _flexible_versions(api_key, MessageType.REQUEST)
    found = header_version(api_key, MessageType.REQUEST, version, flexible=flexible)
    if numbering is Numbering.KAFKA:
        return found
    if found == 0:
        raise UnknownMessageError(
            f"KIP-482 numbers no header without client id: api key {api_key} v{version}"
        )
    return int(flexible)


def response_header_version(
    api_key: int, version: int, numbering: Numbering = Numbering.KAFKA
) -> int:
    """The version of the response header: 1 with tagged fields, 0 without.

    Raises `UnknownMessageError` for an api key that no release has.

    >>> response_header_version(3, 9), response_header_version(3, 8), response_header_version(18, 3)
    (1, 0, 0)
    >>> response_header_version(18, 3, Numbering.KIP_482)
    1
    """
    flexible = version in _flexible_versions(api_key, MessageType.RESPONSE)
    if numbering is Numbering.KIP_482:
        return int(flexible)
    return header_version(api_key, MessageType.RESPONSE, version, flexible=flexible)


def header_version(api_key: int, kind: MessageType, version: int, *, flexible: bool) -> int:
    """The version of the header before a message that is flexible, or is not.

    For messages whose specs are no release's. ``kind`` is a request or a response; an api key that
    no release has is no exception.
    """
    for versions, found in _exceptions(api_key, kind):
        if version in versions:
            return found
    return int(flexible) + (kind is MessageType.REQUEST)


def request_header(numbering: Numbering = Numbering.KAFKA) -> type[Message]:
    """The class of the request header whose versions are numbered so.

    >>> header = request_header(Numbering.KIP_482)
    >>> header(correlation_id=7, client_id="a").encode(1).hex(" ")
    '00 00 00 00 00 00 00 07 02 61 00'
    """
    if numbering is Numbering.KAFKA:
        return message("RequestHeader")
    return message_of(parse_spec(_KIP_482_REQUEST_HEADER, "RequestHeader (KIP-482)", mode="kip"))


def response_header(numbering: Numbering = Numbering.KAFKA) -> type[Message]:
    """The class of the response header whose versions are numbered so."""
    if numbering is Numbering.KAFKA:
        return message("ResponseHeader")
    return message_of(parse_spec(_KIP_482_RESPONSE_HEADER, "ResponseHeader (KIP-482)", mode="kip"))


@per_catalog
@cache
def _exceptions(api_key: int, kind: MessageType) -> tuple[tuple[Versions, int], ...]:
    def matching() -> Iterator[tuple[Versions, int]]:
        for (name, versions), header_version in _EXCEPTIONS.items():
            entry = catalog().entry(name)
            if entry.api_key == api_key and entry.type is kind:
                yield versions, header_version

    return tuple(matching())


@per_catalog
@cache
def _flexible_versions(api_key: int, kind: MessageType) -> Versions:
    # Checked here, or hostile api keys would each stay in the cache as an error's work repeated.
    if api_key not in catalog().api_keys():
        raise UnknownMessageError(f"no Kafka release in the catalog has api key {api_key}")
    return catalog().by_api_key(api_key, kind).flexible_versions


def first_with_tags(kind: MessageType) -> int:
    """The first version of the header of requests or of responses that has room for tags.

    >>> first_with_tags(MessageType.REQUEST), first_with_tags(MessageType.RESPONSE)
    (2, 1)
    """
    return catalog().entry(_HEADERS[kind]).flexible_versions.lowest
