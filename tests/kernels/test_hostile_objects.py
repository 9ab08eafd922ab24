"""All executors write the objects in a message as the same bytes, or all of them refuse.

Kernels read objects by address. The tests therefore put unsuitable objects into every place in a
message: other types, subclasses, values out of range, and objects whose methods raise or change the
message while it is written.
"""

from __future__ import annotations

import json
import random
import sys
import uuid
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given

from flexwire.codec import message, message_of
from flexwire.codec.samples import random_message
from flexwire.errors import EncodeError
from flexwire.schema.parse import parse_spec
from tests.codec.made_up import everything, made
from tests.codec.specs import message_specs
from tests.codec.test_random_specs import SEEDS, compiled, law
from tests.kernels.harness import CURRENT, REFUSED, functions, hooked, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.schema.spec import MessageSpec

MadeUp: Any = everything()


class PlantedError(Exception):
    """The exception of a hostile object; it belongs to the caller, and reaches the caller."""


def _raise(*_: object) -> Any:
    raise PlantedError


class Raises:
    """An object that raises on every access."""

    __eq__ = __ne__ = __bool__ = __index__ = __int__ = __float__ = __len__ = _raise
    __iter__ = __getitem__ = __bytes__ = __str__ = __repr__ = __contains__ = _raise
    __hash__ = _raise


class Index:
    """An object that `operator.index` converts to a number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


class Holder(msgspec.Struct):
    """An object like a structure of no message: tracked by the collector, without
    `unknown_tagged_fields`.
    """

    name: str = ""


def subclass(kind: type, *arguments: Any, **more: Any) -> Any:
    return type(f"My{kind.__name__}", (kind,), {})(*arguments, **more)


def hostile() -> list[Any]:
    """Return new objects that fit no fields or only a few."""
    return [
        *(None, True, 0, -1, 2**15, 2**31, 2**63, -(2**63) - 1, 10**400, subclass(int, 5)),
        *(Index(7), Index(2**40), 1.5, float("nan"), float("inf"), subclass(float, 0.5), 1j),
        *("text", "\ud800", "x" * 32_767, "ß" * 20_000, subclass(str, "text")),
        *(b"bytes", bytearray(b"bytes"), memoryview(b"bytes"), subclass(bytes, b"bytes")),
        *(("t",), [], {"name": "t"}, subclass(list, [1]), subclass(dict, {1: b""})),
        # These are not lists, though some have the length of an empty list.
        *("", b"", (), {}, set(), bytearray(), Raises(), odd_uuid(2**128), odd_uuid(None)),
        *(int, Holder, Holder(), message("RequestHeader")(client_id="a")),
        *([one] for one in (None, True, 2**63, "", b"", 0.5, "\udfff", [], {}, object())),
        *([one] for one in (Raises(), Holder(), message("RequestHeader")())),
        *(object(), subclass(uuid.UUID, int=5)),
    ]


def hostile_tags() -> list[Any]:
    """Return replacements for unknown tagged fields, most of them invalid."""
    return [
        *(None, 0, 5, "", "tags", b"", [], [(9, b"")], (), {9_000: b"x", "y": b""}, Raises()),
        *({tag: b"x"} for tag in (-1, 2**31 - 1, 2**31, 2**70, True, 9.0, None, "9", b"")),
        *({9_000: data} for data in (None, "x", 7, bytearray(b"x"), [b"x"], b"", Raises())),
        *({9_000: subclass(bytes, b"x")}, {subclass(int, 9_000): b"x"}),
        subclass(dict, {9_000: b"x"}),
    ]


def structures(value: Any) -> Iterator[Any]:
    """Yield an object and everything in it."""
    if isinstance(value, list):
        for one in value:
            yield from structures(one)
    elif isinstance(value, msgspec.Struct):
        yield value
        for name in value.__struct_fields__:
            yield from structures(getattr(value, name))


def spoil(value: Any, source: random.Random) -> None:
    """Put something hostile into one place in a message."""
    one = source.choice(list(structures(value)))
    name = source.choice(one.__struct_fields__)
    is_last = name == one.__struct_fields__[-1]
    bad = source.choice(hostile_tags() if is_last else hostile())
    held = getattr(one, name)
    if isinstance(held, list) and held and source.random() < 0.5:
        held[source.randrange(len(held))] = bad
    else:
        setattr(one, name, bad)


def outcome(encode: Callable[..., bytes], *arguments: Any) -> bytes | str:
    """Return the bytes, or one of the allowed errors."""
    try:
        return encode(*arguments)
    except EncodeError as error:
        return str(error)
    except PlantedError:
        return "planted"


@pytest.mark.long
@pytest.mark.slow
@given(message_specs(), SEEDS)
@law
def test_all_executors_say_the_same_of_a_hostile_object(spec: MessageSpec, seed: int) -> None:
    kind, source = compiled(spec), random.Random(seed)
    for version in spec.valid_versions:
        encode = functions(kind, version)[1]
        for _ in range(3):
            value = random_message(kind, version, seed, tagged=source.random() < 0.5)
            spoil(value, source)
            expected = outcome(kind.definition.encode_reference, value, version)
            assert outcome(kind.definition.encode, value, version) == expected
            found = encode(value)
            assert found is REFUSED or found == expected


@pytest.mark.parametrize("name", MadeUp.__struct_fields__)
def test_no_reference_is_kept_or_lost_whatever_stands_in_a_field(name: str) -> None:
    encode = functions(MadeUp, 1)[1]
    for bad in [*hostile(), *hostile_tags()]:
        value = MadeUp(**{name: bad})
        before = sys.getrefcount(bad)
        for _ in range(100):
            encode(value)
        assert abs(sys.getrefcount(bad) - before) < 50


def odd_uuid(number: object) -> uuid.UUID:
    """Make a UUID that no constructor makes."""
    made_up = object.__new__(uuid.UUID)
    object.__setattr__(made_up, "int", number)
    return made_up


def number(answer: Callable[[], object]) -> Any:
    """Make an object that may replace a UUID: ``answer`` returns its bytes."""
    return SimpleNamespace(to_bytes=lambda *_: answer())


@pytest.mark.parametrize(
    "odd",
    [
        *(lambda number=number: odd_uuid(number) for number in (2**128, -1, "x", None, 1.5)),
        lambda: object.__new__(uuid.UUID),
        *(
            lambda answer=answer: odd_uuid(number(lambda: answer))
            for answer in (b"", b"x" * 15, b"x" * 17, "x" * 16, bytearray(16), None)
        ),
        lambda: odd_uuid(number(_raise)),
        Raises,
    ],
)
def test_a_uuid_that_no_constructor_makes_is_refused(odd: Callable[[], Any]) -> None:
    encode = functions(MadeUp, 1)[1]
    assert encode(MadeUp(id=odd())) is REFUSED
    assert encode(MadeUp(ids=[uuid.UUID(int=1), odd()])) is REFUSED


def test_a_list_that_is_emptied_while_it_is_written_is_refused() -> None:
    encode = functions(hooked(), 2)[1]
    value = hooked()(rack="r")

    def empty() -> None:
        value.rows.clear()

    def grow() -> None:
        value.rows.append(row(grow))

    def drop() -> None:
        value.rows = []

    for change in (empty, grow):
        value.rows = [row(change) for _ in range(50)]
        assert encode(value) is REFUSED
    # The writer holds the list until it is written.
    value.rows = [row(drop) for _ in range(50)]
    assert len(hooked().decode(encode(value), 2).rows) == 50
    assert value.rows == []


def test_a_message_whose_fields_are_deleted_is_refused() -> None:
    encode = functions(MadeUp, 1)[1]
    for name in MadeUp.__struct_fields__:
        value = MadeUp()
        delattr(value, name)
        assert encode(value) is REFUSED
    for name in hooked().__struct_fields__:
        value = hooked()(rack="r")
        value.rows = [row(partial(delattr, value, name))]
        # The value was read before it was deleted, so it is written anyway.
        assert (functions(hooked(), 2)[1](value) is REFUSED) == (name != "rows")


def test_a_comparison_that_raises_raises_with_kernels_too() -> None:
    # The absent, ignorable field is compared with its default, and not written.
    kind: Any = made([CURRENT])
    value = kind(current=kind.Current(old=Raises(), epoch=1))
    for version in (2, 3):
        for write in (kind.definition.encode, kind.definition.encode_reference):
            with pytest.raises(PlantedError):
                write(value, version)
        assert functions(kind, version)[1](value) is REFUSED


def test_a_comparison_that_changes_the_message_does_no_harm() -> None:
    kind: Any = made([CURRENT])
    encode = functions(kind, 2)[1]

    class Vanishes:
        __hash__ = None  # type: ignore[assignment]  # as Python does where __eq__ is

        def __eq__(self, other: object) -> bool:
            value.current = None
            return False

    value = kind(current=kind.Current(old=Vanishes(), epoch=1))
    assert encode(value) is REFUSED
    assert value.current is None


def test_a_structure_with_nan_by_default_is_never_left_out() -> None:
    ratio = {"name": "Ratio", "type": "float64", "versions": "2+", "default": "NaN"}
    kind: Any = made([{**CURRENT, "fields": [ratio]}])
    raw = bytes.fromhex("010009 7ff8000000000000 00")
    assert kind.definition.encode_reference(kind(), 2) == raw
    assert kind.definition.encode_generated(kind(), 2) == raw
    assert functions(kind, 2)[1](kind()) == raw
    assert functions(kind, 0)[1](kind()) == b""


def test_structures_nested_as_deep_as_may_be() -> None:
    deepest = 98
    common: list[Any] = [
        {"name": "S0", "versions": "0+", "fields": [{"name": "X", "type": "int8", "versions": "0"}]}
    ]
    for depth in range(1, deepest):
        inner = {"name": "In", "type": f"[]S{depth - 1}", "versions": "0+"}
        common.append({"name": f"S{depth}", "versions": "0+", "fields": [inner]})
    root = {"name": "In", "type": f"S{deepest - 1}", "versions": "0+"}
    spec = {"type": "data", "name": "Deep", "validVersions": "0", "flexibleVersions": "0+"}
    kind: Any = message_of(
        parse_spec(json.dumps({**spec, "commonStructs": common, "fields": [root]}))
    )
    value = kind.S0(5)
    for depth in range(1, deepest):
        value = getattr(kind, f"S{depth}")([value])
    decode, encode = functions(kind, 0)
    raw = kind.definition.encode_reference(kind(value), 0)
    assert encode(kind(value)) == raw
    assert decode(raw) == kind(value)
    assert decode(raw[:-1]) is REFUSED
