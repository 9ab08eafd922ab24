"""The client instance id, and the messages that contain it (KIP-714, KIP-1313).

A client instance is one producer, consumer or admin client in a process, with all its connections.
Up to Kafka 4.4, a broker assigns the id in its response to the client's first request for telemetry
subscriptions. Later telemetry requests contain the id in their bodies. With request header 3, the
client creates the id itself and sends it in the header. The zero UUID always means no id. The specs
mark the field that contains the id (`FieldSpec.identifies_client_instance`).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final
from uuid import UUID

from flexwire.codec import message
from flexwire.errors import CodecError, UnknownMessageError
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.schema.header_versions import HEADER_NAMES
from flexwire.schema.spec import MessageType
from flexwire.wire.field_spans import BoundedReader, field_spans

if TYPE_CHECKING:
    from flexwire.protocol.headers import RequestFrame, ResponseFrame

_NO_ID: Final = UUID(int=0)
# The maximum number of elements and tagged fields that are skipped before the id. In no release do
# any elements precede the id.
_MOST_WALKED: Final = 1_000


def client_instance_id(request: RequestFrame, payload: bytes) -> UUID | None:
    """Return the client instance id in a request's header or body, or None if there is no id.

    ``payload`` is the payload of the request's frame. The id in the header takes precedence over
    the id in the body. The result is also None for a body that ends before the id, and for a
    version that is not in the catalog.
    """
    return header_instance_id(request) or _in_body(
        request.message_name, request.api_version, payload, request.body_offset
    )


def header_instance_id(request: RequestFrame) -> UUID | None:
    """Return the client instance id in a request's header, or None if there is no id."""
    attribute = client_instance_field(HEADER_NAMES[MessageType.REQUEST])
    given: UUID = _NO_ID if attribute is None else getattr(request.header, attribute)
    return given if given != _NO_ID else None


def assigned_client_instance_id(response: ResponseFrame, payload: bytes) -> UUID | None:
    """Return the client instance id that a response assigns, or None if it assigns no id.

    ``payload`` is the payload of the response's frame. The result is also None for a body that ends
    before the id.
    """
    return _in_body(response.message_name, response.body_version, payload, response.body_offset)


@per_catalog
@cache
def client_instance_field(name: str) -> str | None:
    """Return the attribute that contains the client instance id, or None if there is none.

    ``name`` is the name of a message or a header in the catalog. Only fields outside structures are
    considered.
    """
    fields = (field for spec in catalog().entry(name).all_specs() for field in spec.fields)
    return next((field.attribute for field in fields if field.identifies_client_instance), None)


def _in_body(name: str, version: int, payload: bytes, offset: int) -> UUID | None:
    attribute = client_instance_field(name)
    if attribute is None:
        return None
    try:
        schema = message(name).definition.schema(version)
        reader = BoundedReader(payload, offset, _MOST_WALKED)
        found = [span.value for span in field_spans(schema, reader, [(attribute,)])]
    except (CodecError, UnknownMessageError):
        return None
    return found[0] if found and found[0] != _NO_ID else None
