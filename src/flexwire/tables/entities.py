"""Where messages name groups and topics, as the entity types of fields in their specs say."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from flexwire.schema.catalog import catalog, per_catalog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import FieldSpec

_ENTITIES = {"groupId": "groups", "topicName": "topics"}
KINDS = tuple(_ENTITIES.values())
"""What `entity_paths` tells apart."""


@per_catalog
@cache
def entity_paths(message: str) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Where in a message's body the name of one of `KINDS` stands: paths of columns, and the kind.

    >>> entity_paths("JoinGroupRequest")
    ((('group_id',), 'groups'),)
    """
    found: dict[tuple[tuple[str, ...], str], None] = {}
    for spec in catalog().entry(message).all_specs():
        structs = spec.structs()
        for path, one in fields_with_paths(spec.fields, structs, ()):
            if one.entity_type in _ENTITIES and one.type.name == "string":
                found[path, _ENTITIES[one.entity_type]] = None
    return tuple(found)


def fields_with_paths(
    fields: tuple[FieldSpec, ...], structs: dict[str, tuple[FieldSpec, ...]], above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], FieldSpec]]:
    """The fields with those in their structures, and by which columns one comes to each."""
    for one in fields:
        path = (*above, one.attribute)
        yield path, one
        if one.type.is_struct:
            yield from fields_with_paths(structs[one.type.name], structs, path)
