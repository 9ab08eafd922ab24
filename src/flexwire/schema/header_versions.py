"""The version of the header that precedes each version of a request or response.

In specs of Kafka 4.5, the key ``headerVersions`` contains this version. For older specs, the rule
that released Kafka versions use applies: a flexible version has request header 2 or response header
1, and any other version has request header 1 or response header 0. Kafka's generator made one
exception: version 0 of api key 7, the first request that a controller used, has no client id. The
source is ApiMessageTypeGenerator up to Kafka 4.4.

The response with api key 18 has header 0 in every version, even if its spec says otherwise. A
client reads this response before it knows which versions the broker supports, so the response
header never got a tag section. The sources are KIP-511 and KAFKA-9184.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flexwire.schema.spec import HeaderVersions, MessageType
from flexwire.versions import HIGHEST, Versions

if TYPE_CHECKING:
    from flexwire.schema.spec import MessageSpec

API_VERSIONS_KEY: Final = 18
"""The api key of the first request on a connection."""

HEADER_NAMES: Final = {MessageType.REQUEST: "RequestHeader", MessageType.RESPONSE: "ResponseHeader"}
"""The messages of type `header`: the header of requests and the header of responses."""

READ_BY_ALL: Final = {"RequestHeader": 1, "ResponseHeader": 0}
"""The header version for a request whose version the broker lacks, and for its response.

The source is KAFKA-21160, which Kafka has included since 4.5.
"""

_EXCEPTIONS: Final = {
    (MessageType.REQUEST, 7): HeaderVersions.parse({"0": "0", "1-2": "1", "3+": "2"}),
}
"""Header versions that do not follow from the specs up to Kafka 4.4 or from flexible versions."""


def header_versions(
    kind: MessageType,
    api_key: int | None,
    flexible: Versions,
    written: HeaderVersions | None = None,
) -> HeaderVersions:
    """Return the header versions of a request or response.

    ``flexible`` contains the flexible versions of the message. ``written`` is the value of the key
    ``headerVersions`` in its spec, or None if the spec lacks this key.

    >>> str(header_versions(MessageType.RESPONSE, 18, Versions.parse("3+")))
    '0 in 0+'
    >>> str(header_versions(MessageType.REQUEST, 7, Versions.parse("3+")))
    '0 in 0, 1 in 1-2, 2 in 3+'
    """
    if _is_fixed(kind, api_key):
        return HeaderVersions(((Versions.ALL, 0),))
    if written is not None:
        return written
    if api_key is not None and (excepted := _EXCEPTIONS.get((kind, api_key))):
        return excepted
    return derived(kind, flexible)


def has_fixed_header(spec: MessageSpec) -> bool:
    """Return whether a message has header 0 in every version, even if its spec says otherwise."""
    return _is_fixed(spec.type, spec.api_key)


def _is_fixed(kind: MessageType, api_key: int | None) -> bool:
    return kind is MessageType.RESPONSE and api_key == API_VERSIONS_KEY


def spec_header_versions(spec: MessageSpec) -> HeaderVersions:
    """Return the header versions of the request or response that a spec describes."""
    return header_versions(spec.type, spec.api_key, spec.flexible_versions, spec.header_versions)


def header_version(kind: MessageType, api_key: int | None, header: int, *, flexible: bool) -> int:
    """Return the version of the header before a body with or without tagged fields.

    ``header`` is the header version that the spec defines for this version of the message. An
    encoding may write a flexible version without tagged fields, or any version with them. The
    header changes together with the body. Exceptional headers do not change.

    >>> [header_version(MessageType.REQUEST, 3, 2, flexible=flexible) for flexible in (True, False)]
    [2, 1]
    """
    plain = int(kind is MessageType.REQUEST)
    if _is_fixed(kind, api_key) or header < plain:
        return header
    return max(header, plain + 1) if flexible else plain


def derived(kind: MessageType, flexible: Versions) -> HeaderVersions:
    """Return the header versions that follow from the flexible versions alone.

    >>> str(derived(MessageType.REQUEST, Versions.parse("3+")))
    '1 in 0-2, 2 in 3+'
    """
    plain = int(kind is MessageType.REQUEST)
    if not flexible:
        return HeaderVersions(((Versions.ALL, plain),))
    ranges = (
        (Versions(0, flexible.lowest - 1), plain),
        (flexible, plain + 1),
        (Versions(flexible.highest + 1, HIGHEST), plain),
    )
    return HeaderVersions(tuple(part for part in ranges if part[0]))


def raised_headers(spec: MessageSpec, version: int) -> HeaderVersions | None:
    """Return the `headerVersions` of a spec after a version and all later versions become flexible.

    These versions get the first header with tagged fields, unless their header is already higher.
    Returns None if the spec does not have this key.

    >>> from flexwire.schema.catalog import catalog
    >>> spec = catalog().entry("OffsetDeleteRequest").spec(0)
    >>> print(raised_headers(spec, 1))
    None
    """
    if spec.header_versions is None:
        return None
    tagged = int(spec.type is MessageType.REQUEST) + 1
    raised = Versions(version, HIGHEST)
    ranges = [
        part
        for versions, header in spec.header_versions
        for part in (
            (Versions(versions.lowest, min(versions.highest, version - 1)), header),
            (versions & raised, max(header, tagged)),
        )
        if part[0]
    ]
    return HeaderVersions(tuple(ranges))
