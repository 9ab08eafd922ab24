"""Which other protocol the first bytes of a stream look like.

It words a remark beside bytes in which nothing reads as Kafka's, and decides nothing before that.
"""

from __future__ import annotations

import re

HEAD_BYTES = 32
"""So many bytes of each direction are looked at."""

_HTTP_METHODS = b"GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|CONNECT|TRACE"
# What a stream of the protocol begins with, from either end (RFC 8446, 9110, 9113, 4253, 5321; the
# manuals of PostgreSQL, MySQL, MongoDB, ZooKeeper and AMQP). The first that fits is named.
_BEGINNINGS = [
    ("TLS", rb"[\x14-\x17]\x03[\x00-\x04]"),
    ("HTTP", rb"(?:%s) |HTTP/[12]|PRI \* HTTP/2" % _HTTP_METHODS),
    ("SSH", rb"SSH-[12]"),
    ("AMQP", rb"AMQP"),
    ("SMTP or FTP", rb"220[ -]|EHLO |HELO "),
    ("Redis", rb"\*\d+\r\n\$\d"),
    # A startup packet of protocol 3, or a request for TLS, for GSSAPI or to cancel.
    ("PostgreSQL", rb"\x00\x00..(?:\x00\x03\x00[\x00-\x02][a-z_]|\x04\xd2\x16[\x2e-\x30])"),
    ("MySQL", rb"..\x00\x00\x0a\d+\.\d+\.\d"),
    # Its message header ends with the number of OP_MSG or OP_QUERY.
    ("MongoDB", rb"...\x00.{8}(?:\xdd\x07|\xd4\x07)\x00\x00"),
    # A request for a session: version 0, zxid, timeout, session id, and 16 bytes of a password.
    ("ZooKeeper", rb"\x00\x00\x00[\x2c\x2d]\x00{4}.{8}\x00"),
    ("zeros", rb"\x00{8}"),
]
# A record of TLS: its type and version, and the length of what follows (RFC 8446, section 5).
_TLS_RECORD = re.compile(rb"[\x14-\x17]\x03[\x00-\x04](..)", re.DOTALL)
TLS_HEAD_BYTES, TLS_FIRST_TYPE, TLS_LAST_TYPE, TLS_MAJOR, TLS_NEWEST = 5, 0x14, 0x17, 3, 4
_LONGEST_TLS = (1 << 14) + 2048
_PATTERNS = [(name, re.compile(pattern, re.DOTALL)) for name, pattern in _BEGINNINGS]
_SHORTEST_TEXT = 8


def looks_like(*heads: bytes) -> str | None:
    """The protocol that the first of the heads begins with, the first that is known.

    >>> looks_like(b"", bytes.fromhex("160303007a"))
    'TLS'
    >>> looks_like(bytes.fromhex("00000017001200030000")) is None
    True
    """
    for name, pattern in _PATTERNS:
        if any(pattern.match(head) for head in heads):
            return name
    return "text" if any(map(_is_text, heads)) else None


def tls_record(head: bytes) -> int | None:
    """The length of the record of TLS that begins with these bytes, its head included.

    >>> tls_record(bytes.fromhex("1703030010"))
    21
    """
    found = _TLS_RECORD.match(head)
    length = 0 if found is None else int.from_bytes(found[1])
    return TLS_HEAD_BYTES + length if 0 < length <= _LONGEST_TLS else None


def _is_text(head: bytes) -> bool:
    line = head.rstrip(b"\r\n\t")
    return len(line) >= _SHORTEST_TEXT and all(
        byte in b"\t\r\n" or ord(" ") <= byte <= ord("~") for byte in line
    )
