"""The header layout and the role of each API key and version, according to the specs.

The table contains one word for each request, which holds all facts that a kernel needs. A request
whose facts do not fit into a word is read as an object.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from flexwire.capture.pairing import layout as L  # noqa: N812 - a prefix for about thirty names
from flexwire.protocol.apis import is_released, request_entries
from flexwire.protocol.client_instances import client_instance_field
from flexwire.protocol.conversation import ASKS_FOR_RESPONSE
from flexwire.protocol.credentials import METADATA_TOPIC, METADATA_TOPIC_ID, hides_credentials
from flexwire.protocol.headers import request_header_version, request_name
from flexwire.protocol.sasl import HANDSHAKES, NEGOTIATES
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.schema.message_schemas import schemas_of
from flexwire.wire.schema import Presence
from flexwire.wire.segment_layout import CORRELATION_ID_IN_REQUEST
from flexwire.wire.types import Integer, String

if TYPE_CHECKING:
    from flexwire.columnar.arrays import NumpyArray
    from flexwire.wire.schema import Field, Schema


SECRETS = METADATA_TOPIC.encode(), METADATA_TOPIC_ID.bytes
"""A request with one of these byte strings may ask for records of the cluster's metadata."""

# With these formats, a kernel can read a request's header. The header has no other fields before
# the client id.
_HEAD = {"INT16": 2, "INT32": 4}
_HEAD_ENDS = [L.API_VERSION_AT, CORRELATION_ID_IN_REQUEST, L.REQUEST_HEAD]


@dataclass(frozen=True, slots=True)
class ApiTable:
    """A table with a row for each api key, and with ``versions`` columns.

    The last column applies to all versions newer than the released ones. ``words`` contains a word
    for each version, in the layout of `flexwire.capture.pairing.layout`. ``names`` contains the
    number of the request's name, which is an index into ``requests``.
    """

    words: NumpyArray
    names: NumpyArray
    requests: list[str]

    @property
    def versions(self) -> int:
        """The number of columns in the table."""
        return int(self.words.shape[1])

    def is_handshake(self, payload: bytes) -> bool:
        """Return whether raw tokens may follow a request that begins with these bytes."""
        api_key = int.from_bytes(payload[:2], "big", signed=True)
        version = int.from_bytes(payload[2:4], "big", signed=True)
        return self.shakes_hands(api_key, version)

    def shakes_hands(self, api_key: int, version: int) -> bool:
        """Return whether raw tokens may follow a request with this api key and version."""
        if not (0 <= api_key < len(self.words) and 0 <= version < self.versions):
            return False
        return int(self.words[api_key, version]) >> L.CLASS_SHIFT & L.THREE_BITS == L.HANDSHAKE

    def names_of(self, api_keys: NumpyArray, versions: NumpyArray) -> NumpyArray:
        """Return the number of each request's name."""
        names: NumpyArray = self.names[api_keys, np.minimum(versions, self.versions - 1)]
        return names


@per_catalog
@cache
def api_table() -> ApiTable:
    """Return the table for the catalog."""
    keys = [key for key in sorted(catalog().api_keys()) if key >= 0 and request_entries(key)]
    ranges = [entry.versions for key in keys for entry in request_entries(key)]
    newest = max(
        (versions.highest for versions in ranges if versions and not versions.open_ended), default=0
    )
    shape = max(keys, default=0) + 1, newest + 2
    words, names = np.zeros(shape, np.int64), np.zeros(shape, np.int32)
    requests: dict[str, int] = {}
    for key in keys:
        for version in range(shape[1]):
            name = request_name(key, version)
            names[key, version] = requests.setdefault(name, len(requests))
            words[key, version] = _word(key, version, name)
    return ApiTable(words, names, list(requests))


def _word(api_key: int, version: int, name: str) -> int:
    meaning = _class(name, version) << L.CLASS_SHIFT
    header_version = request_header_version(api_key, version)
    written = _header(schemas_of("RequestHeader").schema(header_version))
    if written is None or not is_released(api_key, version):
        return meaning
    client, tags, instance_tag = written
    acks = L.ALWAYS
    if name == ASKS_FOR_RESPONSE[0]:
        acks = _acks(schemas_of(name).schema(version), ASKS_FOR_RESPONSE[1])
    return (
        L.IS_PLAIN
        | header_version << L.VERSION_SHIFT
        | client << L.CLIENT_SHIFT
        | tags << L.TAGS_SHIFT
        | meaning
        | acks << L.ACKS_SHIFT
        | (instance_tag + 1) << L.INSTANCE_SHIFT
    )


def _class(name: str, version: int) -> int:
    if name == NEGOTIATES:
        return L.NEUTRAL
    if name == HANDSHAKES:
        return L.GUARDS if version else L.HANDSHAKE
    if hides_credentials(name, b""):
        return L.GUARDS
    return L.SEARCHED if any(hides_credentials(name, secret) for secret in SECRETS) else L.RULES_OUT


def _header(schema: Schema) -> tuple[int, bool, int] | None:
    """Return the client id's format, whether tags follow it, and the tag of the client instance id.

    The tag is -1 if there is no client instance id, or if other tags are known. For any other
    header, the result is None.
    """
    inline = [field for field in schema.fields if field.presence is Presence.INLINE]
    ends, end = [], 0
    for field in inline[:3]:
        end += _HEAD.get(field.type.name, 0) if isinstance(field.type, Integer) else 0
        ends.append(end)
    if ends != _HEAD_ENDS or len(inline) > len(ends) + 1:
        return None
    client = _text(inline[-1]) if len(inline) > len(ends) else L.NO_TEXT
    return None if client is None else (client, schema.flexible, _instance_tag(schema))


def _instance_tag(schema: Schema) -> int:
    """Return the client instance id's tag if it is the only known tag, and -1 otherwise."""
    attribute = client_instance_field("RequestHeader")
    tags = [tag for tag, field in schema.tagged.items() if field.attribute == attribute]
    return tags[0] if tags and len(schema.tagged) == 1 and tags[0] < L.SEVEN_BITS else -1


def _text(field: Field) -> int | None:
    if not (isinstance(field.type, String) and field.type.nullable):
        return None
    return L.COMPACT_TEXT if field.type.compact else L.TEXT


def _acks(schema: Schema, name: str) -> int:
    inline = [field for field in schema.fields if field.presence is Presence.INLINE]
    place = next((place for place, field in enumerate(inline) if field.name == name), len(inline))
    if place >= len(inline) or inline[place].type != Integer("INT16", "h") or place > 1:
        return L.ACKS_UNKNOWN
    if place == 0:
        return L.ACKS_FIRST
    how = {L.TEXT: L.ACKS_AFTER_TEXT, L.COMPACT_TEXT: L.ACKS_AFTER_COMPACT_TEXT}
    return how.get(_text(inline[0]) or L.NO_TEXT, L.ACKS_UNKNOWN)
