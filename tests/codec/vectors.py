"""Bytes that Kafka's own Java classes wrote, and that the codec must reproduce.

The classes are from trunk before 4.0; ``release`` is the final release with the same layout and
names.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

from flexwire.codec import Message, message
from flexwire.schema.catalog import catalog
from flexwire.schema.pairs import same_bytes
from flexwire.schema.resolve import resolve

VECTORS = Path(__file__).parents[1] / "vectors" / "messages.jsonl.gz"


@cache
def load() -> dict[str, list[dict[str, Any]]]:
    """Return the vectors by message name."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with gzip.open(VECTORS, "rt", encoding="utf-8") as lines:
        for line in lines:
            vector = json.loads(line)
            found[vector["message"]].append(vector)
    return dict(found)


def has_changed(vector: dict[str, Any]) -> bool:
    """Return whether the layout of the version changed after the vector's release."""
    entry, version = catalog().entry(vector["message"]), vector["version"]
    then, now = (entry.spec(version, release) for release in (vector["release"], None))
    return not same_bytes(resolve(then, version), resolve(now, version))


def class_of(vector: dict[str, Any]) -> type[Message]:
    """Return the class for a vector, with the newest layout unless the layout has changed since."""
    return message(vector["message"], vector["release"] if has_changed(vector) else None)
