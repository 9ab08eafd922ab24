"""Two invented messages: one with every type, and one that shows how versions change fields."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from flexwire.codec import Message, message_of
from flexwire.schema.parse import parse_spec

EVERY_TYPE = [
    {"name": "Flag", "type": "bool", "versions": "0+"},
    {"name": "Tiny", "type": "int8", "versions": "0+"},
    {"name": "Short", "type": "int16", "versions": "0+"},
    {"name": "Port", "type": "uint16", "versions": "0+"},
    {"name": "Count", "type": "int32", "versions": "0+"},
    {"name": "Crc", "type": "uint32", "versions": "0+"},
    {"name": "Offset", "type": "int64", "versions": "0+"},
    {"name": "Ratio", "type": "float64", "versions": "0+"},
    {"name": "Id", "type": "uuid", "versions": "0+"},
    {"name": "Text", "type": "string", "versions": "0+"},
    {"name": "Note", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "Blob", "type": "bytes", "versions": "0+"},
    {"name": "Maybe", "type": "bytes", "versions": "0+", "nullableVersions": "0+"},
    {"name": "Batch", "type": "records", "versions": "0+", "nullableVersions": "0+"},
    {"name": "Numbers", "type": "[]int32", "versions": "0+"},
    {"name": "Flags", "type": "[]bool", "versions": "0+"},
    {"name": "Ids", "type": "[]uuid", "versions": "0+"},
    {"name": "Names", "type": "[]string", "versions": "0+", "nullableVersions": "0+"},
    {
        "name": "Topics",
        "type": "[]Topic",
        "versions": "0+",
        "fields": [
            {"name": "Name", "type": "string", "versions": "0+"},
            {
                "name": "Leader",
                "type": "Leader",
                "versions": "0+",
                "nullableVersions": "0+",
                "default": "null",
                "fields": [{"name": "Epoch", "type": "int32", "versions": "0+", "default": "-1"}],
            },
        ],
    },
]
TAGGED = [
    {"name": "Rack", "type": "string", "versions": "1+", "taggedVersions": "1+", "tag": 0},
    {
        "name": "Cluster",
        "type": "string",
        "versions": "1+",
        "taggedVersions": "1+",
        "tag": 1,
        "nullableVersions": "1+",
        "default": "null",
    },
    {"name": "Level", "type": "int32", "versions": "1+", "taggedVersions": "1+", "tag": 2},
    {
        "name": "Current",
        "type": "Current",
        "versions": "1+",
        "taggedVersions": "1+",
        "tag": 3,
        "fields": [{"name": "LeaderId", "type": "int32", "versions": "1+", "default": "-1"}],
    },
    {
        "name": "Latest",
        "type": "Latest",
        "versions": "1+",
        "taggedVersions": "1+",
        "tag": 4,
        "nullableVersions": "1+",
        "default": "null",
        "fields": [{"name": "At", "type": "int64", "versions": "1+"}],
    },
    {"name": "Marks", "type": "[]int64", "versions": "1+", "taggedVersions": "1+", "tag": 5},
]


@cache
def everything() -> type[Message]:
    """Version 0 is inflexible; version 1 contains a tag section with six tagged fields."""
    return made(EVERY_TYPE + TAGGED, valid="0-1", flexible="1+", ignorable=True)


def made(
    fields: list[Any], *, valid: str = "0-3", flexible: str = "2+", ignorable: bool = False
) -> type[Message]:
    """Compile a message of these fields."""
    spec = {
        "type": "data",
        "name": "MadeUp",
        "validVersions": valid,
        "flexibleVersions": flexible,
        "fields": [
            {**one, "ignorable": True} if ignorable and "tag" in one else one for one in fields
        ],
    }
    return message_of(parse_spec(json.dumps(spec), "MadeUp.json"))
