"""`flexwire records dump --dialect kip82`: logs of the messages that KIP-82's document proposes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.records.headers import Headers
from flexwire.records.kip82 import Message, encode_message_set

if TYPE_CHECKING:
    from pathlib import Path

LOG = "orders-0/00000000000000000000.log"


def messages(count: int) -> list[Message]:
    made = []
    for offset in range(count):
        headers = Headers()
        headers.put_long("user", offset)
        made.append(Message(offset, 1_700_000_000_000 + offset, b"key", b"paid", headers))
    return made


def written(place: Path, data: bytes) -> Path:
    path = place / LOG
    path.parent.mkdir()
    path.write_bytes(data)
    return path


def dumped(path: Path, *options: str) -> tuple[list[dict[str, Any]], int]:
    asked = ["records", "dump", str(path), "--dialect", "kip82", "--format", "json", *options]
    answer = CliRunner().invoke(app, asked)
    return [json.loads(line) for line in answer.stdout.splitlines()], answer.exit_code


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_every_message_is_a_row_with_its_typed_headers(tmp_path: Path, compression: str) -> None:
    data = encode_message_set(messages(3), compression=compression)
    rows, status = dumped(written(tmp_path, data))
    records = [row for row in rows if row["type"] == "record"]
    assert status == 0
    assert [row["headers"] for row in records] == [
        [{"key": "user", "type": "long", "value": offset}] for offset in range(3)
    ]
    assert [(row["offset"], row["key"], row["value"]) for row in records] == [
        (offset, "key", "paid") for offset in range(3)
    ]


def test_ranges_narrow_it(tmp_path: Path) -> None:
    path = written(tmp_path, encode_message_set(messages(5)))
    rows, _ = dumped(path, "--offsets", "2-3")
    assert [row["offset"] for row in rows if row["type"] == "record"] == [2, 3]
    rows, _ = dumped(path, "--max-bytes", "0")
    assert [row["type"] for row in rows] == ["file"]


def test_damage_is_told_and_the_next_message_is_read(tmp_path: Path) -> None:
    data = bytearray(encode_message_set(messages(3)))
    size = len(data) // 3
    data[size + 20] ^= 0xFF
    rows, status = dumped(written(tmp_path, bytes(data)))
    assert [row["type"] for row in rows] == ["file", "record", "finding", "record"]
    assert (rows[2]["position"], status) == (size, 100)


def test_headers_that_cannot_be_read_are_told_with_their_message(tmp_path: Path) -> None:
    broken = Message(0, 5, None, b"paid", Headers(b"\x00\x00\x00\x05ab"))
    rows, status = dumped(written(tmp_path, encode_message_set([broken])))
    assert [row["type"] for row in rows] == ["file", "finding", "record"]
    assert "offset 0" in rows[1]["reason"]
    assert (rows[2]["value"], status) == ("paid", 100)


@pytest.mark.parametrize("cut", [5, 30])
def test_what_does_not_say_where_it_ends_is_the_end(tmp_path: Path, cut: int) -> None:
    data = encode_message_set(messages(2))
    rows, status = dumped(written(tmp_path, data[: len(data) // 2 + cut]))
    assert [row["type"] for row in rows] == ["file", "record", "finding"]
    assert (rows[2]["size"], status) == (cut, 100)


def test_an_entry_never_takes_more_than_the_file_has(tmp_path: Path) -> None:
    lying = bytes(8) + (2**31 - 1).to_bytes(4, "big") + bytes(20)
    rows, status = dumped(written(tmp_path, lying))
    assert [row["type"] for row in rows] == ["file", "finding"]
    assert status == 100
