"""Files of a real broker, with the output of Kafka's tools (see `tests/vectors/log-segments`)."""

from __future__ import annotations

import base64
import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

_VECTORS = Path(__file__).parents[1] / "vectors" / "log-segments"
BASE = "00000000000000000000"


@cache
def vectors() -> dict[str, dict[str, Any]]:
    """Return all files, by path."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(_VECTORS.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            found |= {one["path"]: one for one in map(json.loads, lines)}
    return found


def data_of(path: str) -> bytes:
    return base64.b64decode(vectors()[path]["data"])


def write(root: Path, path: str, data: bytes | None = None) -> Path:
    """Write a file at its path, with ``content`` if that is given."""
    made = root / path
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_bytes(data_of(path) if data is None else data)
    return made


def write_all(root: Path) -> None:
    for path in vectors():
        write(root, path)
