"""The constants of TCP segments and of the frames inside them.

The sources are RFC 9293 (flags and sequence numbers), Kafka's protocol guide (a frame is an int32
length, followed by this number of bytes), and RequestHeader.json.
"""

from __future__ import annotations

from typing import Final

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
PSH: Final = 0x08
ACK: Final = 0x10

MODULUS: Final = 1 << 32
"""Sequence numbers count bytes modulo this number (RFC 9293, section 3.4)."""
HALF_MODULUS: Final = MODULUS // 2

PREFIX_LENGTH: Final = 4
"""The size of the length before the payload of a frame, in bytes."""
CORRELATION_ID_SIZE: Final = 4
CORRELATION_ID_IN_REQUEST: Final = 4
"""The offset of the correlation id in a request's payload, after the api key and version. In a
response, the correlation id is at the start.
"""

REQUEST_HEAD: Final = PREFIX_LENGTH + 8
"""The number of bytes that a request's length, api key, version and correlation id take."""
RESPONSE_HEAD: Final = PREFIX_LENGTH + 4
"""The number of bytes that a response's length and correlation id take."""
API_KEY_SHIFT: Final = 16
"""In the 32 bits after the length, the api key is in the bits above the version."""
