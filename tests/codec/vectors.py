"""The bytes made by Kafka's own Java classes that the codec is held to."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from flexwire.codec import Message, message

VECTORS = Path(__file__).parents[1] / "vectors" / "messages.jsonl.gz"

# The release whose Java made the vectors, and the one message whose layout has changed since.
MADE_BY = "4.0-trunk-20241025"
PREVIEW = ("ReadShareGroupStateSummaryResponse", 0)


def load() -> dict[str, list[dict[str, Any]]]:
    """Give the vectors by message name."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with gzip.open(VECTORS, "rt", encoding="utf-8") as lines:
        for line in lines:
            vector = json.loads(line)
            found[vector["message"]].append(vector)
    return dict(found)


def class_of(vector: dict[str, Any]) -> type[Message]:
    """Give the class for a vector: the newest layout, but for the one preview."""
    preview = (vector["message"], vector["version"]) == PREVIEW
    return message(vector["message"], MADE_BY if preview else None)
