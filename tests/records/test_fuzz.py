"""Any bytes are read as batches or raise `RecordError`; rewritten batches have the same content."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.errors import RecordError
from flexwire.records import decode_batches
from tests.records.batches import GZIP, batch, message
from tests.searching import times

pytestmark = pytest.mark.slow

_PATH = Path(__file__).parents[1] / "vectors" / "records.jsonl.gz"
with gzip.open(_PATH, "rt", encoding="ascii") as _lines:
    _DOCUMENTS = [bytes.fromhex(json.loads(line)["hex"]) for line in _lines]
SMALL = [data for data in _DOCUMENTS if len(data) < 2000]

_mutation = st.tuples(
    st.sampled_from(["set", "insert", "delete", "cut"]),
    st.integers(min_value=0, max_value=2000),
    st.sampled_from([b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff", b"\x80\x80\x80\x80\x08"])
    | st.binary(min_size=1, max_size=4),
)
_fuzz = settings(max_examples=times(150))


def _mutate(data: bytes, mutations: list[tuple[str, int, bytes]]) -> bytes:
    out = bytearray(data)
    for kind, where, content in mutations:
        position = where % (len(out) + 1)
        if kind == "cut":
            del out[max(position, 17) :]
        elif kind == "delete":
            del out[position : position + len(content)]
        else:
            size = len(content) if kind == "set" else 0
            out[position : position + size] = content
    return bytes(out)


def _read_everything(data: bytes, *, check_crc: bool = False) -> int:
    """Continue reading after every error; return how many records were read."""
    batches = decode_batches(data, check_crc=check_crc, max_inflated=1 << 18)
    records = 0
    position = -1
    while batches.position < len(data):
        assert batches.position > position, "every step goes forward"
        position = batches.position
        try:
            for found in batches:
                position = found.position
                records += len(found.records)
                again = decode_batches(found.encode())
                assert [record for batch in again for record in batch.records] == found.records
        except RecordError as error:
            assert 0 <= error.offset <= len(data)  # noqa: PT017 - most examples raise an error, some do not
    return records


def test_unharmed_documents_give_records() -> None:
    assert len(SMALL) > 100
    assert all(_read_everything(data, check_crc=True) for data in SMALL)


@_fuzz
@given(st.sampled_from(SMALL), st.lists(_mutation, min_size=1, max_size=6))
def test_mutated_documents(data: bytes, mutations: list[tuple[str, int, bytes]]) -> None:
    _read_everything(_mutate(data, mutations))


@_fuzz
@given(st.binary(max_size=200), st.integers(0, 2), st.integers(0, 7), st.integers(-1, 9))
def test_any_body_behind_a_sound_header(body: bytes, magic: int, codec: int, count: int) -> None:
    if magic == 2:
        data = batch(body, count, attributes=codec)
    else:
        data = message(body, magic=magic, attributes=codec)
    _read_everything(data, check_crc=True)


@_fuzz
@given(st.sampled_from(SMALL), st.lists(_mutation, min_size=1, max_size=6), st.integers(0, 1))
def test_mutated_inflated_bytes(
    data: bytes, mutations: list[tuple[str, int, bytes]], magic: int
) -> None:
    found = next(iter(decode_batches(data)))
    if found.magic == 2:
        body = gzip.compress(_mutate(data[61:], mutations), compresslevel=1)
        _read_everything(batch(body, found.record_count, attributes=GZIP), check_crc=True)
    else:
        body = gzip.compress(_mutate(data, mutations), compresslevel=1)
        _read_everything(message(body, magic=magic, attributes=GZIP))


@_fuzz
@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    _read_everything(data)
