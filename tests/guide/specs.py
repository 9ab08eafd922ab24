"""Invented specs for tests."""

from __future__ import annotations

import json
from typing import Any

from flexwire.schema.editions import Edition
from flexwire.schema.parse import parse_spec


def spec_text(name: str, kind: str, **members: Any) -> str:
    """Return the text of a spec with versions 0 to 2, one int32 field, and the given additions."""
    given = {
        "name": name,
        "type": kind,
        "validVersions": "0-2",
        "flexibleVersions": "none",
        "fields": [{"name": "Number", "type": "int32", "versions": "0+"}],
    }
    return json.dumps(given | members)


def edition(name: str, kind: str, **members: Any) -> dict[str, Edition]:
    """Return the spec in the form that `given_messages` accepts."""
    return {name: Edition(parse_spec(spec_text(name, kind, **members), f"{name}.json"))}
