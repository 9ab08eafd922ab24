"""No kernel touches a byte outside its buffers, and no offset exceeds an int32."""

from __future__ import annotations

import signal

import pyarrow as pa
import pytest

from flexwire.codec import message
from flexwire.codec.samples import random_message
from flexwire.columnar import decode_messages, encode_messages, program
from flexwire.errors import CodecError
from tests.columnar.expected import decoded, same
from tests.modules import run
from tests.searching import in_make_long

pytestmark = pytest.mark.guard

GUARD = "tests.columnar.guard"


def test_nothing_is_touched_beyond_a_guard() -> None:
    done = run(GUARD, "8000")
    assert done.returncode == 0, done.stderr
    messages, refused, lied = (int(part.split()[0]) for part in done.stdout.split(", "))
    assert messages == 8000
    # Some damage is in values, so that kernels also read messages to their last byte.
    assert 400 < refused < 7200
    assert lied > 4


@pytest.mark.parametrize("lie", ["input", *in_make_long("columns", "output")])
def test_the_guards_would_catch_a_few_bytes_too_many(lie: str) -> None:
    assert run(GUARD, "4000", "--lie", lie).returncode == -signal.SIGSEGV


def rows_of_some_size(count: int) -> list[bytes]:
    made = message("MetadataResponse")
    made_of = [random_message(made, 12, seed).encode(12) for seed in range(count)]
    return [raw for raw in made_of if len(raw) < 900]


@pytest.mark.parametrize("most", [1000, 3000])
def test_a_full_column_ends_a_chunk(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of_some_size(300)
    expected, _ = decoded("MetadataResponse", rows, [12] * len(rows))
    monkeypatch.setattr(program, "MOST", most)
    found = decode_messages("MetadataResponse", pa.chunked_array([rows]), 12)
    assert found.num_chunks > 2
    same(found.combine_chunks(), expected)
    back = encode_messages("MetadataResponse", found, 12)
    assert back.num_chunks >= found.num_chunks
    assert all(chunk.buffers()[2].size <= most for chunk in back.chunks)
    assert back.to_pylist() == rows
    with pytest.raises(
        CodecError, match="pass the input as a ChunkedArray to get a chunked result"
    ):
        decode_messages("MetadataResponse", pa.array(rows), 12)


def test_a_row_that_fits_in_no_column_is_refused_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [b"\x00" * 11, message("RequestHeader")(client_id="x" * 600).encode(2), b"\x00" * 11]
    monkeypatch.setattr(program, "MOST", 500)
    data = pa.chunked_array([rows])
    found = decode_messages("RequestHeader", data, 2, mode="PERMISSIVE")
    assert [one is None for one in found.values.to_pylist()] == [False, True, False]
    (reason,) = [error["reason"] for error in found.errors.to_pylist() if error]
    assert reason == "a column of the result exceeds 500 bytes or elements"
    structs = pa.chunked_array([decoded("RequestHeader", rows, [2] * 3)[0]])
    back = encode_messages("RequestHeader", structs, 2, mode="PERMISSIVE")
    assert back.values.to_pylist() == [rows[0], None, rows[2]]
