"""docs/sizes.md lists the sizes that people find in their logs, and states what each size means."""

from __future__ import annotations

from pathlib import Path

import pytest

from flexwire.errors import ArgumentError
from flexwire.protocol.first_bytes import find_foreign_protocol, identify_first_bytes, parse_size
from tests.cli.test_messages import Run, run
from tests.each import each
from tests.house.test_readme import blocks, check
from tools.pages.sizes import PAGE, SEEN

__all__ = ["run"]


def test_its_blocks_do_what_they_show() -> None:
    for block in blocks(PAGE.read_text(encoding="utf-8")):
        check(block, Path())


def test_every_size_on_the_page_is_known_to_be_something_else() -> None:
    for given in SEEN:
        first = parse_size(given)
        # RDP and SOCKS connections begin like frames of 50 MB and 84 MB.
        assert (
            find_foreign_protocol(first) is not None
            or " or the length of a frame" in identify_first_bytes(first).what
        )


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
            assert "TLS" in identify_first_bytes(bytes([kind, 3, minor, length])).what


def test_no_frame_that_a_broker_takes_is_called_something_else() -> None:
    limit = 104_857_600
    for size in [*range(0, 70_000, 7), *range(70_000, limit, 9_991), 0x03000013, 0x05010002, limit]:
        first = size.to_bytes(4, "big")
        assert identify_first_bytes(first).is_length
        assert find_foreign_protocol(first) is None


def test_any_four_bytes_are_said_to_be_something(run: Run) -> None:
    for given in ("369295616", "0x9f3c2201", "-1", "0", "POST", "1179651"):
        ran = run("explain", "--size", given)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.count("\n") >= 2
    assert run("explain", "--size", "1", "MetadataRequest").code == 2
    assert run("explain").code == 2
