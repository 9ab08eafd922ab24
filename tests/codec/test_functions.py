"""Functions for many messages return what the methods return, with and without kernels."""

from __future__ import annotations

from types import BuiltinFunctionType
from typing import Any

import pytest

from flexwire.codec import Encoding, definition, message, message_of
from flexwire.codec.definition import functions_of, python_functions
from flexwire.errors import DecodeError, EncodeError, UnknownMessageError
from flexwire.kernels import load_kernels, objects
from flexwire.schema.parse import parse_spec
from tests.codec.made_up import everything
from tests.codec.vectors import class_of, load

MadeUp: Any = everything()
VECTORS = [vector for vectors in load().values() for vector in vectors]


_ONE = """{"name": "One", "type": "data", "validVersions": "0", "flexibleVersions": "none",
  "fields": [{"name": "Number", "type": "int32", "versions": "0+"}]}"""


@pytest.fixture(params=["kernels", "no kernels"])
def functions(request: pytest.FixtureRequest) -> Any:
    """Return the maker of the functions, with and without kernels."""
    if request.param == "kernels":
        assert load_kernels()
        return functions_of
    return python_functions


@pytest.mark.slow
def test_every_vector_goes_through(functions: Any) -> None:
    for vector in VECTORS:
        made, raw, version = class_of(vector), bytes.fromhex(vector["hex"]), vector["version"]
        decode, encode = functions(made.definition, version)
        value = decode(raw)
        assert value == made.definition.decode_exactly(raw, version)
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


def test_without_kernels_the_functions_are_python_s(monkeypatch: pytest.MonkeyPatch) -> None:
    header: Any = message_of(parse_spec(_ONE.replace("One", "WithoutKernels")))
    monkeypatch.setattr(definition, "load_kernel", lambda _: None)
    decode, encode = functions_of(header.definition, 0)
    assert decode(encode(header(number=5))) == header(number=5)
    assert not isinstance(decode, BuiltinFunctionType)


def test_the_first_message_runs_on_kernels() -> None:
    made: Any = message_of(parse_spec(_ONE.replace("One", "First")))
    assert not made.definition.functions
    assert made.decode(made(number=7).encode(0), 0) == made(number=7)
    assert isinstance(made.definition.functions[0][0], BuiltinFunctionType)
    with pytest.raises(DecodeError, match="1 bytes follow"):
        made.decode(bytes(5), 0)


def test_the_class_gives_the_same_function_each_time() -> None:
    header: Any = message("RequestHeader")
    assert header.decoder(2) is header.decoder(2)
    assert header.decoder(2)(header.encoder(2)(header(client_id="a"))) == header(client_id="a")


def test_tagged_fields_of_another_form_do_not_suit_the_kernels() -> None:
    schema = MadeUp.definition.schema(1, Encoding.INTERLEAVED)
    with pytest.raises(objects.UnsuitableError):
        objects.Program(schema, MadeUp.definition.classes)
