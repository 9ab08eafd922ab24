"""Small invented specs and their messages, with measured sizes."""

from __future__ import annotations

import json
from typing import Any

from flexwire.codec.message import message_of
from flexwire.schema.editions import Edition
from flexwire.schema.parse import parse_spec
from flexwire.specs.cost.meter import ComparisonSide, CostMeter, SentMessage, VersionChoice
from flexwire.specs.cost.sides import SideSpecs
from flexwire.wire.encoding import Encoding

Field = dict[str, Any]


def spec(*fields: Field, valid: str = "0", flexible: str = "0+", **more: Any) -> Edition:
    """Return a message called Ping; a field is in all versions unless it says otherwise."""
    told = {
        "name": "Ping",
        "type": "data",
        "validVersions": valid,
        "flexibleVersions": flexible,
        "fields": [{"versions": "0+"} | one for one in fields],
    }
    return Edition(parse_spec(json.dumps(told | more), "Ping.json"))


def body(edition: Edition, version: int = 0, /, **values: Any) -> bytes:
    encoded: bytes = message_of(edition.spec)(**values).encode(version)
    return encoded


def sent(data: bytes, version: int = 0, name: str = "Ping") -> SentMessage:
    return SentMessage(name, None, None, version, data)


def compare(
    old: Edition,
    new: Edition,
    *bodies: bytes,
    version: int = 0,
    at: VersionChoice = VersionChoice.SENT,
    encodings: tuple[Encoding, Encoding] = (Encoding.KAFKA, Encoding.KAFKA),
) -> CostMeter:
    sides = [
        ComparisonSide(SideSpecs({one.spec.name: one}), encoding)
        for one, encoding in zip((old, new), encodings, strict=True)
    ]
    meter = CostMeter(sides[0], sides[1], at)
    for one in bodies:
        meter.add(sent(one, version))
    return meter


def totals(meter: CostMeter) -> tuple[int, int]:
    rows = meter.rows.values()
    return sum(one.whole.old.total for one in rows), sum(one.whole.new.total for one in rows)
