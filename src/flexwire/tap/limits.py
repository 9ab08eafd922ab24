"""Limits on the tap's event loop: the part of a frame that becomes objects, and held bytes.

One loop carries all connections, so slow work for one peer makes all others wait. 100 kB of the
densest messages become some 50,000 objects, in about 20 ms. A longer frame is decoded only up to
this limit, walked by its lengths (`flexwire.wire.field_spans`), or withheld as a whole.
"""

from __future__ import annotations

from typing import Final

MOST_DECODED: Final = 100_000
"""Bytes of one frame that become objects."""
MOST_WALKED: Final = 50_000
"""Elements and tagged fields of one frame that are stepped over in a search for fields.

A Metadata response of the largest clusters names some hundred brokers, and a Fetch response some
thousand partitions before the addresses at its end.
"""
MOST_FRAMES: Final = 100
"""Frames of one connection that one step of the event loop handles.

The smallest frames have 14 bytes, so 18,000 of them may come at once, and take half a second. The
others wait until the loop has served the other connections.
"""
MOST_HELD: Final = 512 * 1024 * 1024
"""Bytes of incomplete frames, over all connections of a tap.

Above this, a frame passes, and the capture has only its beginning: its header without its body.
"""
MOST_HELD_UNANSWERED: Final = 512 * 1024
"""The limit for one request, until a broker has answered a request that is not part of a login.

Kafka accepts as much before authentication (``sasl.server.max.receive.size``, CVE-2022-34917).
"""
FEWEST_IN_FLIGHT: Final = 1000
"""Requests that may wait for their response until then; afterwards `DEFAULT_IN_FLIGHT` of
`flexwire.protocol.conversation`."""


def beginning(payload: bytes) -> bytes:
    """Return the part of a frame's payload that may become objects, with the whole header."""
    return payload if len(payload) <= MOST_DECODED else payload[:MOST_DECODED]
