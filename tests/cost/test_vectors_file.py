from __future__ import annotations

import gzip
import pickle
from typing import TYPE_CHECKING

import pytest

from flexwire.specs.cost.meter import SentMessage
from flexwire.specs.cost.vectors import VectorError, read_vectors

if TYPE_CHECKING:
    from pathlib import Path

LINE = '{"message": "Ping", "version": 3, "hex": "0aFF", "more": [1]}\n'


def test_a_line_is_a_message_and_empty_lines_are_none(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    path.write_text(f"\n{LINE}  \n{LINE}", encoding="utf-8")
    expected = [SentMessage("Ping", None, None, 3, b"\x0a\xff")] * 2
    assert list(read_vectors(path)) == expected
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert list(read_vectors(path)) == expected


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("\udcff".encode("utf-8", "surrogateescape"), "not JSON"),
        ("[]", "expected an object with"),
        ("7", "expected an object with"),
        ('{"message": "A", "version": 0}', "expected an object with"),
        ('{"message": "A", "version": 0, "hex": "0"}', "expected an object with"),
        ('{"message": "A", "version": 0, "hex": 7}', "expected an object with"),
        ('{"message": "A", "version": true, "hex": ""}', "expected a message name"),
        ('{"message": "A", "version": -1, "hex": ""}', "expected a message name"),
        ('{"message": "A", "version": 32768, "hex": ""}', "expected a message name"),
        ('{"message": 1, "version": 0, "hex": ""}', "expected a message name"),
        ('{"message": [], "version": 0, "hex": ""}', "expected a message name"),
    ],
)
def test_what_is_no_message_is_told_with_its_line(
    line: str | bytes, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "some.jsonl"
    path.write_bytes(LINE.encode() + (line if isinstance(line, bytes) else line.encode()))
    with pytest.raises(VectorError, match=rf"some\.jsonl:2: {reason}") as caught:
        list(read_vectors(path))
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301 - ours


def test_a_file_that_is_damaged_or_not_there_is_told(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl.gz"
    whole = gzip.compress(LINE.encode() * 1000)
    for damaged in (whole[:-12], whole[:12] + b"\xff\xff\xff" + whole[15:]):
        path.write_bytes(damaged)
        with pytest.raises(VectorError, match="cannot be read"):
            list(read_vectors(path))
    with pytest.raises(VectorError, match="No such file"):
        list(read_vectors(tmp_path / "none"))
