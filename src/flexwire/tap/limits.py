"""Limits for the tap's event loop: how much of a frame is decoded, and how many bytes are held.

A single loop handles all connections, so slow work for one peer makes all others wait. The densest
messages of 100 kB are decoded into about 50,000 objects, in about 20 ms. A longer frame is decoded
only up to this limit, searched by its lengths (`flexwire.wire.field_spans`), or withheld
completely.
"""

from __future__ import annotations

from typing import Final

MOST_DECODED: Final = 100_000
"""The largest number of bytes of a frame that are decoded into objects."""
MOST_WALKED: Final = 50_000
"""The largest number of elements and tagged fields that a search for fields in a frame skips.

In the largest clusters, a Metadata response names about a hundred brokers, and a Fetch response
contains about a thousand partitions before the addresses at its end.
"""
MOST_FRAMES: Final = 100
"""The largest number of frames of a connection that are processed in one step of the event loop.

The smallest frames are 14 bytes long, so 18,000 frames may arrive together, and processing them
takes half a second. The other frames wait until the loop has served the other connections.
"""
MOST_HELD: Final = 512 * 1024 * 1024
"""The largest number of bytes of incomplete frames that a tap holds for all its connections.

Above this limit, a frame is forwarded, but the capture contains only its beginning
(`BEGINNING_BYTES` of `flexwire.protocol.frames`).
"""
MOST_HELD_UNANSWERED: Final = 512 * 1024
"""The limit for each request until a broker has answered a request that is not part of a login.

Kafka accepts the same number of bytes before authentication (``sasl.server.max.receive.size``,
CVE-2022-34917).
"""
FEWEST_IN_FLIGHT: Final = 1000
"""The number of requests that may wait for their responses before a broker has answered a request
that is not part of a login. After that answer, the limit is `DEFAULT_IN_FLIGHT` of
`flexwire.protocol.conversation`.
"""


def beginning(payload: bytes) -> bytes:
    """Return the part of a frame's payload that may be decoded, including the complete header."""
    return payload if len(payload) <= MOST_DECODED else payload[:MOST_DECODED]
