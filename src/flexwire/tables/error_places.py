"""Where responses have error codes, and which topic each is about, as their specs say."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from flexwire.protocol.error_codes import is_error_code
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.schema.spec import MessageType
from flexwire.tables.entities import fields_with_paths

Path = tuple[str, ...]

_TOPIC_NAME = ("topicName", "string")
_TOPIC_ID = ("TopicId", "uuid")


@dataclass(frozen=True, slots=True)
class ErrorPlace:
    """An error code in a message's body, by columns, and the topic that it is about.

    ``topic`` and ``topic_id`` stand in the same structure, or in the next one around it that has
    them; None where there is none.
    """

    path: Path
    topic: Path | None
    topic_id: Path | None


@per_catalog
@cache
def error_places(message: str) -> tuple[ErrorPlace, ...]:
    """Where a response has error codes, in any of its versions; nowhere in other messages.

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
        for path, one in fields_with_paths(spec.fields, spec.structs(), ()):
            kind = str(one.type)
            if is_error_code(one.name, kind):
                codes[path] = None
            elif (one.entity_type, kind) == _TOPIC_NAME:
                topics[path[:-1]] = path
            elif (one.name, kind) == _TOPIC_ID:
                ids[path[:-1]] = path
    return tuple(ErrorPlace(path, _nearest(path, topics), _nearest(path, ids)) for path in codes)


def _nearest(path: Path, places: dict[Path, Path]) -> Path | None:
    around = (path[:end] for end in range(len(path) - 1, -1, -1))
    return next((places[one] for one in around if one in places), None)
