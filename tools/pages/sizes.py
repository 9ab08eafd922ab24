"""docs/sizes.md: the sizes that people find in their logs, and what each of them means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.protocol.first_bytes import identify_first_bytes, parse_size
from tools.pages.files import DOCS, write_files

if TYPE_CHECKING:
    from pathlib import Path

PAGE = DOCS / "sizes.md"
# The first four bytes that brokers and clients log, and that health checks and scanners send.
SEEN = [
    *(f"0x160301{last:02x}" for last in (0, 1, 2, 4)),
    *("0x16030300", "0x15030100", "0x15030200", "0x15030300", "0x17030300"),
    *("GET ", "POST", "PUT ", "HEAD", "OPTI", "DELE", "CONN", "PRI ", "HTTP", "1213486156"),
    *("SSH-", "PROX", "\r\n\r\n", "JRMI", "ruok", "stat", "PING", "EHLO", "AMQP"),
    *("0x03000013", "0x05010000", "0x100c0004"),
]
_ADVICE = (
    ("TLS to a listener without TLS", b"\x16\x03\x01\0"),
    ("No TLS to a listener with TLS", b"\x15\x03\x03\0"),
    ("HTTP to a broker", b"GET "),
    ("A client at an HTTP server", b"HTTP"),
    ("A load balancer's header", b"PROX"),
    ("ZooKeeper's health checks", b"ruok"),
    ("All others", b"SSH-"),
)
_HEAD = """# Sizes in errors: what the number is

A peer that does not speak Kafka's protocol still sends bytes. The receiver reads the first four
bytes as the length of a frame, finds this length too large, and logs it:

- a broker: `InvalidReceiveException: Invalid receive (size = 369295616 larger than 104857600)`
- a Java client: `OutOfMemoryError: Java heap space` in `NetworkReceive`, without a number
- librdkafka, and so confluent-kafka for Python, Go and .NET: `Receive failed: Invalid response
  size 1213486156 (0..100000000): increase receive.message.max.bytes`
- franz-go: `invalid large response size 352518912 > limit 104857600`

**Do not raise the limit.** The number is not a size, so raising `socket.request.max.bytes` or
`receive.message.max.bytes` does not help. `flexwire explain --size` explains what the number is and
what to do:

```console
$ flexwire explain --size 369295616
369295616 is the bytes 16 03 01 00: a TLS handshake, the hello that begins a connection
If a broker logs this, a client speaks TLS to a listener without TLS: set the client's
security.protocol to PLAINTEXT or SASL_PLAINTEXT, or point the client at the port of the TLS
listener. If a client logs this, the client expects plaintext from a TLS listener: set the
client's security.protocol to SSL or SASL_SSL, or point the client at the port of the plaintext
listener.
```

The command accepts the number as it appears in the log, the bytes as `0x16030100`, or four
characters such as `POST`. `python -m tools.pages.sizes` writes this page.

| size | bytes | what they are |
|---|---|---|
"""


def files() -> dict[Path, str]:
    """Return the page."""
    sizes = sorted(map(parse_size, SEEN))
    return {PAGE: _HEAD + "".join(map(_row, sizes)) + _tail()}


def _row(first: bytes) -> str:
    size = int.from_bytes(first, "big", signed=True)
    text = first.decode("latin-1")
    shown = f" `{text}`" if text.isprintable() and text.isascii() else ""
    return f"| {size} | {first.hex(' ')}{shown} | {identify_first_bytes(first).what} |\n"


def _tail() -> str:
    """Return the last part: what to do about each kind of first bytes."""
    advice = "\n\n".join(
        f"**{title}.** {identify_first_bytes(first).advice}" for title, first in _ADVICE
    )
    return f"\n## What to do\n\n{advice}\n"


if __name__ == "__main__":
    write_files(files())
