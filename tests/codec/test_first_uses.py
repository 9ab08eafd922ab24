"""The reference handles a version's first messages; code is generated when that pays off."""

from __future__ import annotations

from typing import Any

import pytest

from flexwire.codec import Encoding, definition, message_of
from flexwire.codec.definition import Definition, weight_of
from flexwire.errors import DecodeError, EncodeError
from flexwire.schema.parse import parse_spec
from tests.codec.vectors import class_of, load

VECTORS = [vector for vectors in load().values() for vector in vectors]
# This runs on import, before any fixture.
SHIPPED = definition.PAYS
# Equal specs share a class, but each test needs an unused class.
_NUMBERS = iter(range(1_000_000))


@pytest.fixture(autouse=True)
def generated_late(monkeypatch: pytest.MonkeyPatch) -> None:
    assert definition.PAYS == 0  # the value that conftest.py sets for the other tests
    monkeypatch.setattr(definition, "PAYS", SHIPPED)
    # Kernels need no generated code.
    monkeypatch.setattr(definition, "load_kernel", lambda _: None)


def unused() -> Any:
    spec = """{"name": "Unused%d", "type": "data", "validVersions": "0-1", "flexibleVersions": "1+",
      "fields": [{"name": "Names", "type": "[]string", "versions": "0+"},
                 {"name": "Parts", "type": "[]Part", "versions": "0+", "fields": [
                   {"name": "Number", "type": "int32", "versions": "0+"}]}]}"""
    return message_of(parse_spec(spec % next(_NUMBERS), mode="strict"))


def generated(kind: Any) -> tuple[int, int]:
    return len(kind.definition._decoders), len(kind.definition._encoders)


def test_one_message_generates_nothing() -> None:
    kind = unused()
    raw = kind(names=["a"]).encode(0)
    assert kind.decode(raw, 0) == kind(names=["a"])
    assert kind(names=["a"]).encode(0, encoding=Encoding.KAFKA) == raw
    assert generated(kind) == (0, 0)


def test_many_do_each_way_and_version_by_itself() -> None:
    kind = unused()
    value = kind(parts=[kind.Part(number=7)])
    for _ in range(SHIPPED // 100):
        raw = value.encode(0)
    assert generated(kind) == (0, 1)
    for _ in range(SHIPPED // 100):
        assert kind.decode(raw, 0) == value
    assert generated(kind) == (1, 1)
    assert value.encode(1) != raw
    assert generated(kind) == (1, 1)


def test_a_large_one_does_at_once() -> None:
    kind = unused()
    value = kind(names=["a" * SHIPPED])
    raw = value.encode(0)
    assert generated(kind) == (0, 1)
    assert kind.decode(raw, 0) == value
    assert generated(kind) == (1, 1)


def test_many_small_structures_are_a_large_one() -> None:
    kind = unused()
    kind(parts=[kind.Part()] * 50).encode(0)
    assert generated(kind) == (0, 1)


def test_an_object_that_is_in_itself_has_a_weight() -> None:
    kind = unused()
    endless: list[Any] = []
    endless += [endless, endless]
    value = kind(parts=endless)
    assert weight_of(value) > SHIPPED
    with pytest.raises(EncodeError):
        value.encode(0)


def test_what_is_refused_is_refused_in_the_same_words_before_and_after() -> None:
    kind = unused()
    told = set()
    for _ in range(3 * SHIPPED // 100):
        with pytest.raises(DecodeError) as refused:
            kind.decode(b"\x00\x00\x00\x01\x00\x05a", 0)
        told.add(str(refused.value))
        with pytest.raises(EncodeError) as refused_too:
            kind(names=[None]).encode(0)
        told.add(str(refused_too.value))
        with pytest.raises(DecodeError) as left:
            kind.decode(kind().encode(0) + b"!", 0)
        told.add(str(left.value))
    assert generated(kind) == (1, 1)
    assert len(told) == 3


@pytest.mark.long
@pytest.mark.slow
def test_every_vector_is_the_same_by_either(monkeypatch: pytest.MonkeyPatch) -> None:
    by_reference = []
    monkeypatch.setattr(definition, "PAYS", 1 << 62)
    monkeypatch.setattr(Definition, "_decoder", None)
    for vector in VECTORS:
        made, raw, version = class_of(vector), bytes.fromhex(vector["hex"]), vector["version"]
        made.definition._decoders.clear()
        by_reference.append(made.definition.decode_exactly(raw, version))
    monkeypatch.undo()
    monkeypatch.setattr(definition, "PAYS", 0)
    for vector, expected in zip(VECTORS, by_reference, strict=True):
        made, raw, version = class_of(vector), bytes.fromhex(vector["hex"]), vector["version"]
        assert made.definition.decode_exactly(raw, version) == expected
        assert made.definition.encode(expected, version) == raw
