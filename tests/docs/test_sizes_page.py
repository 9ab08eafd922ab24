"""docs/sizes.md has the sizes that people find in their logs, and what each of them is.

Write it anew with ``python -m tests.docs.test_sizes_page``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from flexwire.errors import ArgumentError
from flexwire.protocol.first_bytes import foreign, opening_of, parse_size
from tests.cli.test_messages import Run, run
from tests.each import each
from tests.house.test_readme import blocks, check

__all__ = ["run"]

PAGE = Path(__file__).parents[2] / "docs" / "sizes.md"
# What brokers and clients log, and health checks and scanners send: the first four bytes.
SEEN = [
    *(f"0x160301{last:02x}" for last in (0, 1, 2, 4)),
    *("0x16030300", "0x15030100", "0x15030200", "0x15030300", "0x17030300"),
    *("GET ", "POST", "PUT ", "HEAD", "OPTI", "DELE", "CONN", "PRI ", "HTTP", "1213486156"),
    *("SSH-", "PROX", "\r\n\r\n", "JRMI", "ruok", "stat", "PING", "EHLO", "AMQP"),
    *("0x03000013", "0x05010000", "0x100c0004"),
]
HEAD = """# Sizes in errors: what the number is

A peer that does not speak Kafka's protocol sends bytes all the same. Whoever reads them takes the
first four for the length of a frame, finds it too large, and logs it:

- a broker: `InvalidReceiveException: Invalid receive (size = 369295616 larger than 104857600)`
- a Java client: `OutOfMemoryError: Java heap space` in `NetworkReceive`, without a number
- librdkafka, so also confluent-kafka for Python, Go and .NET: `Receive failed: Invalid response
  size 1213486156 (0..100000000): increase receive.message.max.bytes`
- franz-go: `invalid large response size 352518912 > limit 104857600`

**Do not raise the limit.** `socket.request.max.bytes` and `receive.message.max.bytes` have nothing
to do with it: the number is no size. `flexwire explain --size` says what it is and what to do:

```console
$ flexwire explain --size 369295616
369295616 is the bytes 16 03 01 00: a TLS handshake, the hello that begins a connection
If a broker logs this, a client speaks TLS to a listener without TLS: set the client's
security.protocol to PLAINTEXT or SASL_PLAINTEXT, or point it at the port of the TLS listener.
If a client logs this, swap the two.
```

It takes the number as the log has it, the bytes as `0x16030100`, or four characters such as `POST`.
`python -m tests.docs.test_sizes_page` writes this page.

| size | bytes | what they are |
|---|---|---|
"""


def page() -> str:
    """Write the page."""
    sizes = sorted(map(parse_size, SEEN))
    return HEAD + "".join(map(row, sizes)) + TAIL


def row(first: bytes) -> str:
    size = int.from_bytes(first, "big", signed=True)
    text = first.decode("latin-1")
    shown = f" `{text}`" if text.isprintable() and text.isascii() else ""
    return f"| {size} | {first.hex(' ')}{shown} | {opening_of(first).what} |\n"


TAIL = """
## What to do

"""
TAIL += "".join(
    f"**{title}.** {advice}\n\n"
    for title, advice in (
        ("TLS to a listener without TLS", opening_of(b"\x16\x03\x01\0").advice),
        ("No TLS to a listener with TLS", opening_of(b"\x15\x03\x03\0").advice),
        ("HTTP to a broker", opening_of(b"GET ").advice),
        ("A client at an HTTP server", opening_of(b"HTTP").advice),
        ("A load balancer's header", opening_of(b"PROX").advice),
        ("ZooKeeper's health checks", opening_of(b"ruok").advice),
        ("All others", opening_of(b"SSH-").advice),
    )
).rstrip("\n")
TAIL += "\n"


def test_the_page_has_every_size_and_what_to_do() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()
    for block in blocks(page()):
        check(block, Path())


def test_every_size_on_the_page_is_known_to_be_something_else() -> None:
    for given in SEEN:
        first = parse_size(given)
        # RDP and SOCKS begin as frames of 50 MB and 84 MB do.
        assert foreign(first) is not None or " or the length of a frame" in opening_of(first).what


@pytest.mark.parametrize(
    ("given", "first"),
    [
        ("369295616", b"\x16\x03\x01\0"),
        ("1,195,725,856", b"GET "),
        ("-1", b"\xff\xff\xff\xff"),
        ("4294967295", b"\xff\xff\xff\xff"),
        ("0X15030300", b"\x15\x03\x03\0"),
        ("0x5a", b"\0\0\0Z"),
        ("HTTP", b"HTTP"),
        ("GET", b"GET "),
        ("SSH-", b"SSH-"),
    ],
)
def test_a_size_is_read_however_it_is_written(given: str, first: bytes) -> None:
    assert parse_size(given) == first


@pytest.mark.parametrize("given", ["", "hello", "99999999999", "0x123456789", "größ", "1.5e9"])
def test_what_is_no_size_is_refused(given: str) -> None:
    with pytest.raises(ArgumentError, match="size: expected"):
        parse_size(given)


@each("kind", range(0x14, 0x19))
def test_every_record_of_tls_is_known_whatever_its_length(kind: int) -> None:
    for minor in range(5):
        for length in (0, 1, 2, 64, 255):
            assert "TLS" in opening_of(bytes([kind, 3, minor, length])).what


def test_no_frame_that_a_broker_takes_is_called_something_else() -> None:
    limit = 104_857_600
    for size in [*range(0, 70_000, 7), *range(70_000, limit, 9_991), 0x03000013, 0x05010002, limit]:
        first = size.to_bytes(4, "big")
        assert opening_of(first).is_length
        assert foreign(first) is None


def test_any_four_bytes_are_said_to_be_something(run: Run) -> None:
    for given in ("369295616", "0x9f3c2201", "-1", "0", "POST", "1179651"):
        ran = run("explain", "--size", given)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.count("\n") >= 2
    assert run("explain", "--size", "1", "MetadataRequest").code == 2
    assert run("explain").code == 2


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
