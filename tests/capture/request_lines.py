"""Request logs for tests: lines of real brokers, and logs made from these lines."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexwire.logs.request_log import RequestLogReader, Zone, read_lines
from flexwire.logs.request_log.lines import RequestLogPiece, pieces_of
from flexwire.logs.request_log.recognition import log_file
from flexwire.storage.file_search import list_files

if TYPE_CHECKING:
    from flexwire.logs.request_log.requests import Item

# Lines of real brokers, a few for each API, in Kafka's default layout.
PLACE = Path(__file__).parents[1] / "vectors" / "request_logs"
JSON_RELEASES = ("2.8.2", "3.9.2", "4.4.0")
RELEASES = ("2.7.2", *JSON_RELEASES)


@cache
def real_lines(release: str) -> tuple[bytes, ...]:
    return tuple((PLACE / f"{release}.log").read_bytes().splitlines())


def read(path: Path, zone: str = "UTC", size: int = 1 << 30) -> list[Item]:
    """Return the content of a file's lines, read in pieces."""
    (source,) = list_files([path], lambda _: True, "")
    file = log_file(source, 0)
    assert file is not None
    pieces: list[RequestLogPiece] = [*pieces_of([file], size)]
    return [
        item
        for piece in pieces
        for item in RequestLogReader(Zone(zone)).read(read_lines(piece))
        if item is not None
    ]


def line(**changes: Any) -> bytes:
    """Return a line that a 4.4 broker might write, with some fields changed."""
    said: dict[str, Any] = {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": 3,
            "requestApiVersion": 12,
            "correlationId": 7,
            "clientId": "c",
            "requestApiKeyName": "METADATA",
        },
        "request": {
            "topics": None,
            "allowAutoTopicCreation": True,
            "includeTopicAuthorizedOperations": False,
        },
        "response": {
            "throttleTimeMs": 0,
            "brokers": [],
            "clusterId": "k",
            "controllerId": 1,
            "topics": [],
        },
        "connection": "10.0.0.1:9092-10.0.0.9:50000-0-1",
        "totalTimeMs": 2.5,
        "securityProtocol": "SASL_SSL",
        "principal": "User:alice",
        "listener": "CLIENTS",
        "clientInformation": {"softwareName": "unknown", "softwareVersion": "unknown"},
    }
    text = json.dumps(said | changes, separators=(",", ":"))
    return (
        f"[2026-11-22 20:00:00,123] DEBUG Completed request:{text} (kafka.request.logger)".encode()
    )
