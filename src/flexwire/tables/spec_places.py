"""The places of groups, topics, error codes, records and throttle times in messages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from flexwire.protocol.credentials import METADATA_TOPIC, METADATA_TOPIC_ID
from flexwire.protocol.error_codes import is_error_code
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.schema.spec import MessageType
from flexwire.wire.varint import uuid_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import FieldSpec


_ENTITIES = {"groupId": "groups", "topicName": "topics"}
KINDS = tuple(_ENTITIES.values())
"""The kinds of names that `entity_paths` finds."""


@per_catalog
@cache
def entity_paths(message: str) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Return the paths of the columns that name groups or topics, each with its kind (`KINDS`).

    >>> entity_paths("JoinGroupRequest")
    ((('group_id',), 'groups'),)
    """
    paths: dict[tuple[tuple[str, ...], str], None] = {}
    for spec in catalog().entry(message).all_specs():
        structs = spec.structs()
        for path, spec_field in fields_with_paths(spec.fields, structs, ()):
            if spec_field.entity_type in _ENTITIES and spec_field.type.name == "string":
                paths[path, _ENTITIES[spec_field.entity_type]] = None
    return tuple(paths)


def fields_with_paths(
    fields: tuple[FieldSpec, ...], structs: dict[str, tuple[FieldSpec, ...]], above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], FieldSpec]]:
    """Yield the fields, including fields inside structures, each with its column path."""
    for field in fields:
        path = (*above, field.attribute)
        yield path, field
        if field.type.is_struct:
            yield from fields_with_paths(structs[field.type.name], structs, path)


@dataclass(frozen=True, slots=True)
class RecordsField:
    """The place of record bytes in a message: names of fields, from the outside to the inside.

    ``topic_name`` and ``topic_id`` are in the same structure as the array of partitions. Either
    field may be missing.
    """

    message: str
    source: str
    topics: str
    topic_name: str | None
    topic_id: str | None
    partitions: str
    partition: str
    records: str

    @property
    def path(self) -> tuple[str, ...]:
        """The path to the records, through topics and their partitions."""
        return self.topics, self.partitions, self.records


# The messages that carry records of topics. A snapshot (FetchSnapshotResponse) is part of a file
# and may begin at any byte, so its "unaligned records" are not record batches. They remain only in
# the message's own table.
RECORDS_FIELDS = (
    RecordsField(
        "ProduceRequest", "produce", "topic_data", "name", "topic_id", "partition_data", "index",
        "records",
    ),
    RecordsField(
        "FetchResponse", "fetch", "responses", "topic", "topic_id", "partitions",
        "partition_index", "records",
    ),
    RecordsField(
        "ShareFetchResponse", "share_fetch", "responses", None, "topic_id", "partitions",
        "partition_index", "records",
    ),
)  # fmt: skip

CARRYING_RESPONSES: Final = tuple(
    field.message for field in RECORDS_FIELDS if field.message.endswith("Response")
)
"""The responses that carry records. A broker may wait for records before it sends such a response.
"""

# The message that contains the names of topics and their ids.
TOPIC_NAMES_MESSAGE = "MetadataResponse"

KNOWN_TOPICS: Final = {uuid_text(METADATA_TOPIC_ID): METADATA_TOPIC}
"""The names of topics whose id is always the same, by the id as text. Metadata does not list these
topics.
"""

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ErrorPlace:
    """The path of an error code in a message's body, and the topic to which it refers.

    ``topic`` and ``topic_id`` are in the same structure as the code, or in the nearest structure
    around it. Each is None if there is no such field.
    """

    path: Path
    topic: Path | None
    topic_id: Path | None


@per_catalog
@cache
def error_places(message: str) -> tuple[ErrorPlace, ...]:
    """Return the places of error codes in a response, in any version. Requests contain none.

    >>> [".".join(one.path) for one in error_places("MetadataResponse")]
    ['topics.error_code', 'topics.partitions.error_code', 'error_code']
    """
    entry = catalog().entry(message)
    if entry.type is not MessageType.RESPONSE:
        return ()
    codes: dict[Path, None] = {}
    topics: dict[Path, Path] = {}
    ids: dict[Path, Path] = {}
    for spec in entry.all_specs():
        for path, spec_field in fields_with_paths(spec.fields, spec.structs(), ()):
            if is_error_code(spec_field.name, str(spec_field.type)):
                codes[path] = None
            elif spec_field.names_topic:
                topics[path[:-1]] = path
            elif spec_field.identifies_topic:
                ids[path[:-1]] = path
    return tuple(ErrorPlace(path, _nearest(path, topics), _nearest(path, ids)) for path in codes)


def _nearest(path: Path, places: dict[Path, Path]) -> Path | None:
    around = (path[:end] for end in range(len(path) - 1, -1, -1))
    return next((places[path] for path in around if path in places), None)


THROTTLE: Final = "throttle_time_ms"
"""The response field with the throttle time in milliseconds. Kafka always uses this name."""


@per_catalog
@cache
def throttled_messages() -> tuple[str, ...]:
    """Return the names of the responses that contain `THROTTLE` in some version.

    >>> "FetchResponse" in throttled_messages(), "SaslHandshakeResponse" in throttled_messages()
    (True, False)
    """
    return tuple(name for name in catalog().names() if _has_throttle(name))


def _has_throttle(message: str) -> bool:
    entry = catalog().entry(message)
    return entry.type is MessageType.RESPONSE and any(
        field.attribute == THROTTLE for spec in entry.all_specs() for field in spec.fields
    )
