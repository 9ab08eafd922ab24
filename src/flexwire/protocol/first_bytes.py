"""The meaning of four bytes at the place where a frame's length is expected.

If a peer does not use Kafka's protocol, the reader interprets the peer's first four bytes as a
size. The same invalid sizes therefore appear in many logs.

Sources: RFC 8446 section 5.1 (TLS records), RFC 9113 section 3.4 (HTTP/2), RFC 4253 section 4.2
(SSH), the PROXY protocol's specification, RFC 1928 (SOCKS), ZooKeeper's four-letter words.
"""

from __future__ import annotations

import re
import string
from typing import Final, NamedTuple

from flexwire.arguments import refuse
from flexwire.protocol.apis import is_released
from flexwire.protocol.frames import SENT_FRAME_LIMIT
from flexwire.protocol.headers import request_name
from flexwire.wire.limits import INT32_MIN, UINT32_MAX
from flexwire.wire.segment_layout import PREFIX_LENGTH


class FirstBytes(NamedTuple):
    """The meaning of four bytes, the remedy, and whether the bytes can be a length."""

    what: str
    advice: str
    is_length: bool = False


# The content types of TLS records.
_RECORDS: Final = {
    20: "a TLS change_cipher_spec record",
    21: "a TLS alert",
    22: "a TLS handshake, the hello that begins a connection",
    23: "TLS application data: encrypted bytes",
    24: "a TLS heartbeat record",
}
_ALERT: Final = 21
# A TLS record may contain an older version number, because more peers accept an old number.
_TLS_MAJOR, _TLS_MINORS = 3, range(5)
_TLS_ADVICE: Final = (
    "If a broker logs this, a client speaks TLS to a listener without TLS: set the client's "
    "security.protocol to PLAINTEXT or SASL_PLAINTEXT, or point the client at the port of the TLS "
    "listener. If a client logs this, the client expects plaintext from a TLS listener: set the "
    "client's security.protocol to SSL or SASL_SSL, or point the client at the port of the "
    "plaintext listener."
)
_ALERT_ADVICE: Final = (
    "If a client logs this, the client speaks plaintext to a TLS listener: set the client's "
    "security.protocol to SSL or SASL_SSL, or point the client at the port of the plaintext "
    "listener. If a broker logs this, "
    "a TLS client rejects the bytes that a listener without TLS sends."
)
_HTTP_REQUEST: Final = (
    "If a broker logs this, a program is sending HTTP to the broker's port: a load balancer's "
    "health check, a monitoring system, a browser or a scanner. Point that program at another "
    "port, or have it check the broker's port only by opening a TCP connection."
)
_HTTP_RESPONSE: Final = (
    "If a client logs this, its bootstrap.servers points to an HTTP server, such as a REST proxy, "
    "Schema Registry, Connect or an HTTP load balancer: specify the host and port of a broker's "
    "listener."
)
_OTHER: Final = (
    "If a broker logs this, find the program that connects from the address in the log, and point "
    "that program at the right port. If a client logs this, point the client at a broker's "
    "listener."
)
_PROXY: Final = (
    "A load balancer writes the PROXY protocol's header before the client's bytes. Kafka does not "
    "support this header: disable the PROXY protocol for this port."
)
_WORDS: Final = (
    "A program, such as an old health check, sends a ZooKeeper command to a Kafka port. Point the "
    "program at ZooKeeper, or remove the program."
)

# The protocol that begins with these four bytes (as a string), and the remedy.
_TEXTS: Final = {
    **{
        word: (f"the beginning of an HTTP request ({name})", _HTTP_REQUEST)
        for word, name in {
            "GET ": "GET",
            "POST": "POST",
            "PUT ": "PUT",
            "HEAD": "HEAD",
            "DELE": "DELETE",
            "OPTI": "OPTIONS",
            "PATC": "PATCH",
            "CONN": "CONNECT",
            "TRAC": "TRACE",
        }.items()
    },
    "PRI ": ("the beginning of HTTP/2, which gRPC uses", _HTTP_REQUEST),
    "HTTP": ("the beginning of an HTTP response", _HTTP_RESPONSE),
    "SSH-": ("an SSH greeting", _OTHER),
    "PROX": ("the PROXY protocol, version 1", _PROXY),
    "\r\n\r\n": ("the PROXY protocol, version 2", _PROXY),
    "RTSP": ("the beginning of RTSP", _OTHER),
    "JRMI": ("the beginning of Java RMI, which JMX uses", _OTHER),
    "AMQP": ("the beginning of AMQP, which RabbitMQ uses", _OTHER),
    "EHLO": ("the greeting of an SMTP client", _OTHER),
    "HELO": ("the greeting of an SMTP client", _OTHER),
    "220 ": ("the greeting of an SMTP or FTP server", _OTHER),
    "PING": ("a Redis or NATS command", _OTHER),
    "INFO": ("the greeting of a NATS server, or a Redis command", _OTHER),
    "*1\r\n": ("a Redis command", _OTHER),
    "<htm": ("an HTML page", _HTTP_RESPONSE),
    "<!DO": ("an HTML page", _HTTP_RESPONSE),
    "<?xm": ("XML", _OTHER),
    **{
        word: (f"ZooKeeper's four-letter word {word}", _WORDS)
        for word in ("ruok", "stat", "srvr", "mntr", "conf", "envi", "cons", "dump", "isro")
    },
}
_TPKT: Final = b"\x03\x00\x00"
_SSL2: Final = 0x80
_MQTT_CONNECT: Final = 0x10
# librdkafka reports a size without the correlation id, because it counts the id as part of the
# header.
_LEFT_OUT: Final = 4
_TEXT: Final = string.ascii_letters + string.digits + string.punctuation + " \r\n"
_PRINTABLE: Final = frozenset(_TEXT.encode())
_STRANGE: Final = (
    "Check the program at the address in the log. Possible causes are a peer that uses another "
    "protocol, a proxy that changes the bytes, and a reader that lost its position in a stream."
)
_DECIMAL: Final = re.compile(r"-?\d{1,10}|-?\d{1,3}(,\d{3})+")
_HEX: Final = re.compile(r"0[xX]([0-9A-Fa-f]{1,8})")


def identify_first_bytes(first: bytes) -> FirstBytes:
    r"""Return the meaning of the first four bytes of a connection.

    >>> identify_first_bytes(b"\x16\x03\x01\x02").what
    'a TLS handshake, the hello that begins a connection'
    >>> identify_first_bytes(b"GET ").what
    'the beginning of an HTTP request (GET)'
    >>> identify_first_bytes(b"\0\0\0\x5a").what
    'the length of a frame of 90 bytes'
    """
    if len(first) != PREFIX_LENGTH:
        raise refuse("first", f"{PREFIX_LENGTH} bytes", first)
    return find_foreign_protocol(first) or _length(first)


def find_foreign_protocol(first: bytes) -> FirstBytes | None:
    """Return the foreign protocol that begins with four bytes, or None for a possible length."""
    return _tls(first) or _text(first) or _binary(first)


def parse_size(text: str) -> bytes:
    r"""Return the four bytes that a string represents: a logged number, hex, or four characters.

    Raises `ArgumentError` for any other text.

    >>> parse_size("369295616"), parse_size("0x16030100"), parse_size("POST")
    (b'\x16\x03\x01\x00', b'\x16\x03\x01\x00', b'POST')
    """
    if _DECIMAL.fullmatch(text):
        number = int(text.replace(",", ""))
        if INT32_MIN <= number <= UINT32_MAX:
            return (number & UINT32_MAX).to_bytes(PREFIX_LENGTH, "big")
    elif (match := _HEX.fullmatch(text)) is not None:
        return bytes.fromhex(match[1].zfill(2 * PREFIX_LENGTH))
    elif len(text) <= PREFIX_LENGTH and text.isascii() and text:
        # Shell quoting easily loses the space in "GET ".
        return text.ljust(PREFIX_LENGTH).encode()
    raise refuse("size", "a 32-bit number, 0x and 8 hex digits, or 4 characters", text)


def _tls(first: bytes) -> FirstBytes | None:
    kind, major, minor = first[:3]
    if major == _TLS_MAJOR and kind in _RECORDS and minor in _TLS_MINORS:
        return FirstBytes(_RECORDS[kind], _ALERT_ADVICE if kind == _ALERT else _TLS_ADVICE)
    if first[0] & _SSL2 and first[2:] == b"\x01\x03":
        return FirstBytes("the hello of an SSL 2 or 3 client", _TLS_ADVICE)
    return None


def _text(first: bytes) -> FirstBytes | None:
    meaning = _TEXTS.get(first.decode("latin-1"))
    if meaning is not None:
        return FirstBytes(*meaning)
    more = int.from_bytes(first, "big") + _LEFT_OUT
    meaning = _TEXTS.get(more.to_bytes(PREFIX_LENGTH + 1, "big")[1:].decode("latin-1"))
    if meaning is not None:
        return FirstBytes(
            f"{meaning[0]}, if librdkafka (which subtracts 4) reports the size", meaning[1]
        )
    if all(byte in _PRINTABLE for byte in first):
        return FirstBytes("text that does not begin any protocol known to flexwire", _OTHER)
    return None


def _binary(first: bytes) -> FirstBytes | None:
    if first[0] == _MQTT_CONNECT and first[2:] == b"\x00\x04":
        return FirstBytes("the CONNECT packet of an MQTT client", _OTHER)
    return None


def _doubtful(first: bytes) -> str | None:
    """Return another meaning of a frame length of 50 MB or more, if there is one."""
    if first[:3] == _TPKT and first[3]:
        return "the beginning of RDP (TPKT), which port scanners send"
    if first[:2] == b"\x05\x01" and first[2] == 0:
        return "the greeting of a SOCKS5 client"
    return None


def _length(first: bytes) -> FirstBytes:
    size = int.from_bytes(first, "big", signed=True)
    key, version = (int.from_bytes(first[at : at + 2], "big") for at in (0, 2))
    if size < 0 or size > SENT_FRAME_LIMIT:
        what = f"not the beginning of a known protocol; read as a frame length, {size:,} bytes"
        return FirstBytes(what, _STRANGE)
    what = f"the length of a frame of {size:,} bytes"
    if (other := _doubtful(first)) is not None:
        return FirstBytes(f"{other}, or {what}", _OTHER, is_length=True)
    advice = (
        f"By default, a broker accepts frames of up to {SENT_FRAME_LIMIT:,} bytes "
        "(socket.request.max.bytes). If a broker refused this frame, the broker's limit is lower: "
        "check that limit before you check the client."
    )
    if key and is_released(key, version):
        advice += (
            " If nobody sent a frame of this size, the four bytes are the start of the header of a "
            f"{request_name(key, version)} "
            f"v{version}, and the length before the header is missing."
        )
    return FirstBytes(what, advice, is_length=True)
