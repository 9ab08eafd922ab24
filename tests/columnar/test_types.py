from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from flexwire.columnar import decode_messages, message_type
from flexwire.columnar.types import MOST_COLUMNS, merge
from flexwire.errors import SpecError
from flexwire.schema.catalog import catalog
from flexwire.schema.parse import parse_spec
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS

if TYPE_CHECKING:
    from flexwire.schema.spec import MessageSpec


def doubling(levels: int) -> MessageSpec:
    """Return a spec in which each structure holds the next one twice."""

    def fields(level: int) -> list[dict[str, object]]:
        if level == levels:
            return [{"name": "Last", "type": "int8", "versions": "0+"}]
        kind = f"Level{level}"
        return [{"name": f"F{one}", "type": kind, "versions": "0+"} for one in range(2)]

    common = [
        {"name": f"Level{level}", "versions": "0+", "fields": fields(level + 1)}
        for level in range(levels)
    ]
    spec = {"name": "Doubling", "type": "data", "validVersions": "0", "flexibleVersions": "none"}
    return parse_spec(json.dumps(spec | {"fields": fields(0), "commonStructs": common}), "D.json")


def test_a_spec_that_doubles_itself_is_refused_at_once() -> None:
    few = doubling(6)
    found = decode_messages(few, pa.array([bytes(64)]), 0)
    assert str(found[0].as_py()).count("'last': 0") == 64
    with pytest.raises(SpecError, match=f"more than {MOST_COLUMNS} columns"):
        decode_messages(doubling(60), pa.array([b""]), 0)


def test_every_message_of_kafka_has_a_type() -> None:
    for name in catalog().names():
        assert pa.types.is_struct(message_type(name))


def test_types_of_several_specs_widen_or_are_refused() -> None:
    narrow, wide = pa.struct([("a", pa.int8()), (UNKNOWN_TAGGED_FIELDS, pa.null())]), pa.int64()
    merged = merge("M", [narrow, pa.struct([("a", wide), (UNKNOWN_TAGGED_FIELDS, pa.null())])])
    assert merged.field("a").type == wide
    with pytest.raises(SpecError, match=r"M\.a.*no common column"):
        merge("M", [narrow, pa.struct([("a", pa.string()), (UNKNOWN_TAGGED_FIELDS, pa.null())])])
