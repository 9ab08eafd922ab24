"""What a capture says of itself where only a part of the connections is in it.

It stands in a comment on the section header of each file: Wireshark shows it among the properties
of the file, and readers see it before the first packet.
"""

from __future__ import annotations

import json
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from flexwire.capture.files.reading import (
    BYTE_ORDERS,
    DAMAGE,
    SECTION_MAGIC,
    DamagedError,
    options_in,
)
from flexwire.kernels.capture.packets_layout import OPTION_COMMENT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader

MOST_HEAD_BYTES: Final = 4096
"""What is beyond these bytes of a file is not looked at: a tap's comment is the first option."""
_PREFIX: Final = b"flexwire: captured of all connections: "
_SHARE: Final = "share"
_OPTIONS_AT: Final = 24


def sampling_comment(share: float) -> bytes:
    """The comment that says which share of connections is captured.

    >>> sampling_comment(0.1)
    b'flexwire: captured of all connections: {"share": 0.1}'
    """
    return _PREFIX + json.dumps({_SHARE: share}).encode()


def share_in(file: BufferedReader[Any]) -> float | None:
    """The share of connections that an open file says it holds, without reading on; else None.

    What is damaged says none, and whatever reads it next finds the damage.
    """
    return next((one for said in comments_in(file) if (one := _parsed(said)) is not None), None)


def comments_in(file: BufferedReader[Any]) -> Iterator[bytes]:
    """The comments on the first section header of an open file, without reading on."""
    try:
        head = file.peek(MOST_HEAD_BYTES)[:MOST_HEAD_BYTES]
    except DAMAGE:
        return
    order = BYTE_ORDERS.get(head[8:12])
    if not head.startswith(SECTION_MAGIC) or order is None:
        return
    (length,) = struct.unpack(f"{order}I", head[4:8])
    # The block's length stands at its end again.
    with suppress(DamagedError):
        for code, value in options_in(head[: max(0, length - 4)], _OPTIONS_AT, order):
            if code == OPTION_COMMENT:
                yield value


def _parsed(comment: bytes) -> float | None:
    if not comment.startswith(_PREFIX):
        return None
    try:
        share = json.loads(comment[len(_PREFIX) :])[_SHARE]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return float(share) if type(share) in {int, float} and 0 < share < 1 else None
