"""The kernels produce the same result as the reference, or refuse."""

from __future__ import annotations

import gc
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.codec import message
from flexwire.codec.samples import random_message
from flexwire.errors import DecodeError
from flexwire.schema.catalog import catalog
from tests.codec.made_up import everything
from tests.codec.test_every_version import pairs
from tests.codec.test_message import WRONG
from tests.codec.vectors import class_of, load
from tests.each import each
from tests.kernels.harness import REFUSED, full_message, functions
from tests.references import changed_counts
from tests.searching import times
from tests.traced import traced

MadeUp: Any = everything()
VECTORS = [vector for vectors in load().values() for vector in vectors]


@pytest.mark.slow
def test_every_vector_is_read_and_written() -> None:
    unknown = 0
    for vector in VECTORS:
        made, raw, version = class_of(vector), bytes.fromhex(vector["hex"]), vector["version"]
        decode, encode = functions(made, version)
        value = made.decode(raw, version)
        assert decode(raw) == value
        assert encode(value) == raw
        unknown += bool(vector["unknown_tagged_fields"])
    assert unknown > 10


@pytest.mark.long
@pytest.mark.slow
@each("name", catalog().names())
def test_every_version_of_every_message(name: str) -> None:
    for made, version in pairs(name):
        decode, encode = functions(made, version)
        for seed in range(2):
            value = random_message(made, version, seed)
            raw = made.definition.encode_reference(value, version)
            assert decode(raw) == value
            assert decode(raw + b"\x00") is REFUSED
            # Unknown tagged fields come in any order, and kernels write them in the order of their
            # tags.
            assert encode(value) in (raw, REFUSED)
            assert encode(decode(raw)) == raw
        assert encode(made()) == made().encode(version)
        assert decode(encode(made())) == made()


@pytest.mark.slow
@given(st.sampled_from(VECTORS), st.data())
@settings(max_examples=times(250))
def test_damaged_bytes_are_read_as_the_reference_reads_them(
    vector: dict[str, Any], data: st.DataObject
) -> None:
    raw = bytearray.fromhex(vector["hex"])
    for _ in range(data.draw(st.integers(0, 4))):
        if raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    made, version = class_of(vector), vector["version"]
    found = functions(made, version)[0](damaged)
    try:
        reference: Any = made.definition.decode_reference(damaged, version)
    except DecodeError:
        reference = REFUSED, len(damaged)
    reference = reference[0] if reference[1] == len(damaged) else REFUSED
    # These are compared as strings, because damage can produce NaN, which is not equal to itself.
    assert repr(found) == repr(reference)


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_what_cannot_be_written_is_refused(wrong: dict[str, Any]) -> None:
    encode = functions(MadeUp, 1)[1]
    assert encode(MadeUp(**wrong)) is REFUSED


@pytest.mark.parametrize(
    "near",
    [
        {"numbers": (1, 2)},
        {"blob": bytearray(b"x")},
        {"count": True},
        {"ratio": 1},
        {"topics": [{"name": "t"}]},
        {"text": type("Text", (str,), {})("x")},
        {"unknown_tagged_fields": {10: b"x", 9: b""}},
        {"unknown_tagged_fields": None},
    ],
    ids=str,
)
def test_what_is_out_of_the_ordinary_is_left_to_the_others(near: dict[str, Any]) -> None:
    assert functions(MadeUp, 1)[1](MadeUp(**near)) is REFUSED


def test_other_arguments_are_refused() -> None:
    decode, encode = functions(MadeUp, 1)
    raw = MadeUp().encode(1)
    for argument in (bytearray(raw), memoryview(raw), None, 5, "text"):
        assert decode(argument) is REFUSED
        assert encode(argument) is REFUSED
    for call in (decode, encode):
        with pytest.raises(TypeError):
            call()  # type: ignore[call-arg]  # wrong on purpose
        with pytest.raises(TypeError):
            call(raw, raw)  # type: ignore[call-arg]  # wrong on purpose


LENGTHS = [0, 1, 125, 126, 127, 128, 129, 16382, 16383, 16384, 32766, 32767]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("version", [0, 1])
def test_every_length_at_the_edges_of_its_prefix(length: int, version: int) -> None:
    decode, encode = functions(MadeUp, version)
    value = MadeUp(
        text="x" * length,
        blob=b"y" * length,
        numbers=[7] * length,
        flags=[True] * length,
        names=["n"] * length,
        marks=[3] * (length if version else 0),
    )
    raw = encode(value)
    assert raw == MadeUp.definition.encode_reference(value, version)
    assert decode(raw) == value
    assert encode(MadeUp(text="x" * 32768)) is REFUSED


@pytest.mark.long
@pytest.mark.guard
def test_nothing_leaks_whether_read_or_refused() -> None:
    decode, encode = functions(MadeUp, 1)
    value = full_message()
    raw = encode(value)
    refused = [*(raw[:cut] for cut in range(len(raw))), *[raw + b"\x00"] * 200]
    unknown = MadeUp(unknown_tagged_fields={9_000: b"x" * 50})
    raw_unknown = unknown.encode(1)
    wrong = [MadeUp(topics=[MadeUp.Topic(name="t"), None]), MadeUp(marks=[1, "x"]), MadeUp(id=None)]

    def work() -> None:
        for _ in range(200):
            assert decode(raw) == value
            assert encode(value) == raw
            assert decode(raw_unknown) == unknown
        for data in refused:
            assert decode(data) is REFUSED
        for one in wrong * 50:
            assert encode(one) is REFUSED

    work()
    gc.collect()
    # Small ints are shared and have many references; kernels must count these correctly.
    ints = [-5, -1, 0, 1, 7, 20, 255, 256]
    singletons = [None, True, False, REFUSED, MadeUp, MadeUp.Topic, uuid.UUID, *ints]
    for one, changed in zip(singletons, changed_counts(work, singletons), strict=True):
        assert changed < 50, one
    with traced() as memory:
        work()
        before = memory.held
        for _ in range(3):
            work()
        grown = memory.held - before
    assert grown < 2000


def test_the_bundled_messages_all_suit_the_kernels() -> None:
    for name in catalog().names():
        for made, version in pairs(name):
            functions(made, version)
    assert message("RequestHeader")
