"""The functions for many messages do what the methods do, with kernels and without."""

from __future__ import annotations

from typing import Any

import pytest

from flexwire.codec import Encoding, bulk, message
from flexwire.codec.bulk import bulk_functions
from flexwire.errors import DecodeError, EncodeError, UnknownMessageError
from flexwire.native.loader import load as load_kernels
from flexwire.native.program import Program, UnsuitableError
from tests.codec.made_up import everything
from tests.codec.vectors import class_of, load

MadeUp: Any = everything()
VECTORS = [vector for vectors in load().values() for vector in vectors]


@pytest.fixture(params=["kernels", "no kernels"])
def functions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give what makes the functions, with and without numba on the machine."""
    if request.param == "kernels":
        assert load_kernels() is not None
        return bulk_functions
    monkeypatch.setattr(bulk, "_kernels", lambda: None)
    return bulk_functions.__wrapped__


def test_every_vector_goes_through(functions: Any) -> None:
    for vector in VECTORS:
        made, raw, version = class_of(vector), bytes.fromhex(vector["hex"]), vector["version"]
        decode, encode = functions(made.definition, version)
        value = decode(raw)
        assert value == made.decode(raw, version)
        assert encode(value) == raw


def test_errors_are_those_of_the_methods(functions: Any) -> None:
    header: Any = message("RequestHeader")
    decode, encode = functions(header.definition, 1)
    for damaged in (b"", bytes.fromhex("001200030000000700ff61"), header().encode(1) + b"!"):
        with pytest.raises(DecodeError) as expected:
            header.decode(damaged, 1)
        with pytest.raises(DecodeError) as caught:
            decode(damaged)
        assert str(caught.value) == str(expected.value)
    with pytest.raises(EncodeError, match="RequestHeader v1 at clientId: expected a str"):
        encode(header(client_id=5))
    with pytest.raises(UnknownMessageError):
        functions(header.definition, 99)


def test_any_buffer_and_near_misses_are_taken(functions: Any) -> None:
    decode, encode = functions(MadeUp.definition, 1)
    usual = MadeUp(numbers=[1, 2], unknown_tagged_fields={9: b"x"})
    raw = usual.encode(1)
    for data in (raw, bytearray(raw), memoryview(raw)):
        assert decode(data) == usual
    assert encode(usual) == raw
    assert encode(MadeUp(numbers=(1, 2), unknown_tagged_fields={9: b"x"})) == raw


def test_the_class_gives_the_same_function_each_time() -> None:
    header: Any = message("RequestHeader")
    assert header.decoder(2) is header.decoder(2)
    assert header.decoder(2)(header.encoder(2)(header(client_id="a"))) == header(client_id="a")


def test_tagged_fields_of_another_form_do_not_suit_the_kernels() -> None:
    schema = MadeUp.definition.schema(1, Encoding.INTERLEAVED)
    with pytest.raises(UnsuitableError):
        Program(schema, MadeUp.definition.classes)
