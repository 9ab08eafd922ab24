"""If a process uses kernels, a class's ``decode`` is a C function with the same results."""

from __future__ import annotations

import inspect
import json
import sys
from typing import Any

import pytest

from flexwire.codec import Message, message, message_of
from flexwire.errors import FlexwireError
from flexwire.schema.parse import parse_spec
from flexwire.wire.encoding import Encoding
from tests.codec.made_up import everything

Header: Any = message("RequestHeader")
RAW: bytes = Header(correlation_id=7, client_id="a").encode(2)
HIGHEST = 70


def python_decode(kind: Any, *arguments: Any, **named: Any) -> Any:
    """Call the method that is written in Python, even if it was replaced."""
    return vars(Message)["decode"].__func__(kind, *arguments, **named)


def outcome(decode: Any, *arguments: Any, **named: Any) -> Any:
    try:
        return decode(*arguments, **named)
    except (FlexwireError, TypeError) as error:
        return type(error), str(error)


@pytest.fixture(autouse=True)
def on_kernels() -> None:
    for version in range(3):
        Header.decoder(version)
    assert inspect.isbuiltin(Header.decode)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((RAW, 2), {}),
        ((RAW,), {"version": 2}),
        ((RAW,), {json.loads('"version"'): 2}),
        ((), {"data": RAW, "version": 2}),
        ((), {"version": 2, "data": RAW}),
        ((RAW, 2), {"lenient": True}),
        ((RAW + b"more", 2), {"lenient": True}),
        ((RAW, 2), {"lenient": False, "encoding": Encoding.KAFKA}),
        ((RAW, 2), {"encoding": Encoding.INTERLEAVED}),
        ((bytearray(RAW), 2), {}),
        ((memoryview(RAW), 2), {}),
        ((RAW[:-1], 2), {}),
        ((RAW + b"more", 2), {}),
        ((RAW, 1), {}),
        *(((RAW, version), {}) for version in (-1, 3, 63, 64, 2**31, 2**63, 2**70, True, 2.0, "2")),
        *(((data, 2), {}) for data in (None, "text", 5)),
        ((), {}),
        ((RAW,), {}),
        ((RAW, 2, 3), {}),
        ((RAW,), {"lenient": True}),
        ((RAW,), {"verzion": 2}),
        ((RAW, 2), {"version": 2}),
        ((RAW, 2), {"lenient": 1}),
    ],
)
def test_it_says_what_the_method_in_python_says(
    arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    expected = outcome(python_decode, Header, *arguments, **named)
    assert outcome(Header.decode, *arguments, **named) == expected


def test_an_object_and_a_subclass_have_it_too() -> None:
    class Own(Header):  # type: ignore[misc]  # a class found by its name is of any kind
        @classmethod
        def decode(cls, data: bytes, version: int) -> Any:
            return super().decode(data, version)

    expected = python_decode(Header, RAW, 2)
    assert Header().decode(RAW, 2) == expected
    assert Own.decode(RAW, 2) == expected
    other: Any = type("Other", (Header,), {})
    assert other.decode(RAW, 2) == expected


def test_each_message_has_its_own() -> None:
    other: Any = message("ResponseHeader")
    raw = other(correlation_id=9).encode(1)
    other.decoder(1)
    assert other.decode(raw, 1).correlation_id == 9
    assert Header.decode(RAW, 2).correlation_id == 7


def test_a_version_is_decoded_before_and_after_it_is_known() -> None:
    fields = [{"name": "Level", "type": "int32", "versions": "0+"}]
    spec = {"type": "data", "name": "High", "validVersions": f"0-{HIGHEST}", "fields": fields}
    kind: Any = message_of(parse_spec(json.dumps(spec | {"flexibleVersions": "none"})))
    for version in (3, 63, 64, HIGHEST, 0):
        assert kind.decode(kind(level=version).encode(version), version).level == version
        kind.decoder(version)
        assert kind.decode(kind(level=version).encode(version), version).level == version


def test_it_is_documented_and_has_a_signature() -> None:
    assert inspect.getdoc(Header.decode) == inspect.getdoc(vars(Message)["decode"].__func__)
    shown = list(inspect.signature(Header.decode).parameters)
    assert shown == list(inspect.signature(vars(Message)["decode"].__func__).parameters)[1:]


def test_it_keeps_no_reference() -> None:
    kind: Any = everything()
    kind.decoder(1)
    raw, version = kind(blob=b"x" * 2000).encode(1), 2**20
    for arguments in ((raw, 1), (raw[:-1], 1), (raw, version), (raw,)):
        counts = [sys.getrefcount(one) for one in (raw, version, kind)]
        for _ in range(100):
            outcome(kind.decode, *arguments)
        now = [sys.getrefcount(one) for one in (raw, version, kind)]
        assert all(abs(one - before) < 20 for one, before in zip(now, counts, strict=True))
