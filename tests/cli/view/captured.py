"""Make a capture with two clients, a token, a hostile client id, and bytes that are not Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flexwire.capture.files.pcapng import PcapngWriter
from tests.cli.mcp.served import HOSTILE, REQUEST, TOKEN
from tests.protocol.payloads import frame, make, request_payload, response_payload

if TYPE_CHECKING:
    from pathlib import Path

MARKUP: Final = "[red]billing[/red] [@click=app.quit]x[/]"
"""A client id that is markup for a terminal."""
EXCHANGES: Final = 5
FIRST: Final = "10.0.0.7:50001>10.0.0.1:9092"
SECOND: Final = "10.0.0.8:50002>10.0.0.1:9092"


def capture(path: Path) -> Path:
    """Write a capture and return its file."""
    with PcapngWriter(path) as writer:
        first = writer.open_connection(("10.0.0.7", 50001), ("10.0.0.1", 9092))
        second = writer.open_connection(("10.0.0.8", 50002), ("10.0.0.1", 9092))
        other = writer.open_connection(("10.0.0.9", 50003), ("10.0.0.1", 443))
        first.send("request", frame(REQUEST))
        other.send("request", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        for number in range(EXCHANGES):
            metadata = make("MetadataRequest", topics=None)
            asked = request_payload(3, 12, metadata, correlation_id=number, client_id=MARKUP)
            second.send("request", frame(asked))
            told = make("MetadataResponse", brokers=[], topics=[])
            second.send("response", frame(response_payload(3, 12, told, correlation_id=number)))
            heartbeat = make("HeartbeatRequest", group_id="g", member_id="m")
            second.send(
                "request", frame(request_payload(12, 4, heartbeat, correlation_id=100 + number))
            )
        first.send("request", frame(TOKEN))
    [file] = writer.paths
    return file


__all__ = ["EXCHANGES", "FIRST", "HOSTILE", "MARKUP", "SECOND", "capture"]
