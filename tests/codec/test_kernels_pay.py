"""The functions for many messages do what the methods do, with kernels and without."""

from __future__ import annotations

from types import BuiltinFunctionType
from typing import Any

import pytest

from flexwire.codec import Encoding, message, message_of
from flexwire.codec.definition import kernel_functions, python_functions
from flexwire.errors import DecodeError, EncodeError, UnknownMessageError
from flexwire.kernels import cache as loader
from flexwire.kernels import loading
from flexwire.kernels.objects.functions import UnsuitableError
from flexwire.kernels.objects.program import ObjectProgram
from flexwire.schema.parse import parse_spec
from tests.codec.made_up import everything
from tests.codec.vectors import class_of, load

MadeUp: Any = everything()
VECTORS = [vector for vectors in load().values() for vector in vectors]


_ONE = """{"name": "One", "type": "data", "validVersions": "0", "flexibleVersions": "none",
  "fields": [{"name": "Number", "type": "int32", "versions": "0+"}]}"""


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has loaded nothing."""
    for name, value in (("kernels", None), ("work", 0), ("is_decided", False)):
        monkeypatch.setattr(loading.PROCESS, name, value)


@pytest.fixture(params=["kernels", "no kernels"])
def functions(request: pytest.FixtureRequest) -> Any:
    """Give what makes the functions, with and without kernels."""
    if request.param == "kernels":
        assert loading.load_kernels()
        return kernel_functions
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


def test_without_kernels_the_functions_are_python_s(cold: None) -> None:
    del cold
    header: Any = message_of(parse_spec(_ONE))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "load", lambda: None)
        decode, encode = kernel_functions(header.definition, 0)
    assert decode(encode(header(number=5))) == header(number=5)
    assert not isinstance(decode, BuiltinFunctionType)


def test_a_process_that_has_worked_long_enough_runs_on_kernels(
    cold: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    del cold
    for name in ("PAYS", "PAYS_IN_WHEEL"):
        monkeypatch.setattr(loading, name, 1000)
    made: Any = message_of(parse_spec(_ONE))
    for number in range(1000 // 4):
        assert made.decode(made(number=number).definition.encode(made(number=number), 0), 0)
        assert not made.definition.functions
    assert made.decode(bytes(4), 0) == made()
    assert isinstance(made.definition.functions[0][0], BuiltinFunctionType)
    # Both methods go through them from now on, and other messages too.
    header: Any = message("RequestHeader")
    assert header.decode(header(client_id="a").encode(2), 2) == header(client_id="a")
    with pytest.raises(DecodeError, match="1 bytes follow"):
        made.decode(bytes(5), 0)


def test_what_is_not_compiled_is_not_compiled_by_itself(
    cold: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    del cold
    monkeypatch.setattr(loader, "is_compiled", lambda: False)
    monkeypatch.setattr(loader, "load", lambda: pytest.fail("compiles"))
    assert loading.kernels(loading.PAYS + 1) is None
    assert loading.kernels(loading.PAYS + 1) is None


def test_kernels_can_be_turned_off(cold: None, monkeypatch: pytest.MonkeyPatch) -> None:
    del cold
    monkeypatch.setenv("FLEXWIRE_KERNELS", "off")
    assert loading.kernels(loading.PAYS + 1) is None


def test_the_class_gives_the_same_function_each_time() -> None:
    header: Any = message("RequestHeader")
    assert header.decoder(2) is header.decoder(2)
    assert header.decoder(2)(header.encoder(2)(header(client_id="a"))) == header(client_id="a")


def test_tagged_fields_of_another_form_do_not_suit_the_kernels() -> None:
    schema = MadeUp.definition.schema(1, Encoding.INTERLEAVED)
    with pytest.raises(UnsuitableError):
        ObjectProgram(schema, MadeUp.definition.classes)
