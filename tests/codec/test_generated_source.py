"""Source is generated for odd specs: names that the source itself uses, and thousands of fields."""

from __future__ import annotations

import ast
import itertools
import math
import pickle
import re
import struct
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from flexwire.codec import Encoding, Message
from flexwire.codec.runtime import (
    Refusal,
    packers_of_many,
    read_count,
    read_length,
    read_string_length,
    to_uuid,
    unpackers_of_many,
    write_length,
    write_string_length,
)
from flexwire.codec.samples import random_message
from flexwire.codec.source import LONGEST_LINE, LONGEST_RUN, OWN, SourceNames, literal
from flexwire.errors import DecodeError, EncodeError
from flexwire.schema.spec import FieldSpec, FieldType
from flexwire.versions import Versions
from flexwire.wire.varint import read_unsigned_varint, write_unsigned_varint
from tests.codec.made_up import made
from tests.codec.test_golden import ruff
from tests.searching import times
from tools.pages.golden import generated_source

if TYPE_CHECKING:
    from pathlib import Path

# Names of imports, functions and constants that the source of these messages also uses.
_SHARED = ["decode_made_up", "unpack_bb", "pack_bb", "taken_made_up", "default_str"]
_TYPES = ["int8", "int8", "bool", "uuid", "string", "bytes", "[]int32", "[]bool", "[]string"]


def field(name: str, kind: str, tag: int | None = None) -> dict[str, Any]:
    words = "".join(word.capitalize() for word in name.split("_"))
    one: dict[str, Any] = {"name": words, "type": kind, "versions": "0+"}
    return one if tag is None else {**one, "tag": tag, "taggedVersions": "2+"}


def attribute(name: str) -> str:
    return FieldSpec(field(name, "int8")["name"], FieldType("int8"), Versions.ALL).attribute


@cache
def odd_names() -> type[Message]:
    """Return a message whose fields and structures have names that its source uses."""
    names = [name for name in (*sorted(OWN), *_SHARED) if attribute(name) == name]
    assert {"size", "range", "read_tag", "message", "unknown", "str", *_SHARED} <= {*names}
    fields = [field(name, kind) for name, kind in zip(names, itertools.cycle(_TYPES), strict=False)]
    structs = ["UUID", "UUID_", "Refusal", "Struct", "None", "True"]
    held = [
        {**field(f"held_{at}", name), "fields": [field("size", "string")]}
        for at, name in enumerate(structs)
    ]
    tagged = [
        {**field(f"tagged_{at}", f"[]{name}", at), "ignorable": True}
        for at, name in enumerate(structs)
    ]
    return made([*fields, *held, *tagged])


@cache
def long_names() -> type[Message]:
    """Return a message with names longer than any of Kafka's, so that most lines are too long."""
    kinds = {"int32": 30, "[]int32": 1, "string": 1, "[]string": 1, "uuid": 1}
    names = (f"a_long_name_for_field_number_{at:02}_" for at in itertools.count())
    fields = [
        field(f"{next(names)}{'tagged' if tag else 'inline'}", kind, tag)
        for kind, times in kinds.items()
        for tag in (*[None] * times, next(_TAGS))
    ]
    structure = "Structure" + "OfALongName" * 3
    fields += [
        {**field("topics", f"[]{structure}"), "fields": [field("at", "int8")]},
        {**field(next(names) + "structures", f"[]{structure}", next(_TAGS)), "ignorable": True},
    ]
    return made([{"ignorable": True, **one} if "tag" in one else one for one in fields])


_TAGS = itertools.count()
ODD = [odd_names, long_names]


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("encoding", Encoding)
def test_any_name_is_read_and_written_as_by_the_reference(kind: Any, encoding: Encoding) -> None:
    definition = kind().definition
    for seed, version in itertools.product(range(5), (0, 2)):
        value = random_message(kind(), version, seed, encoding)
        raw = definition.encode(value, version, encoding)
        assert definition.encode_generated(value, version, encoding) == raw
        again, end = definition.decode(raw, version, 0, lenient=False, encoding=encoding)
        assert (again, end) == definition.decode_reference(raw, version, encoding=encoding)
        assert definition.encode_generated(again, version, encoding) == raw


@pytest.mark.parametrize("kind", ODD)
def test_source_of_any_name_is_laid_out_as_ruff_would(kind: Any, tmp_path: Path) -> None:
    for version, encoding in itertools.product((0, 2), Encoding):
        for what, text in generated_source(kind().definition, version, encoding).items():
            (tmp_path / f"{version}_{encoding.name}_{what}.py").write_text(text, encoding="utf-8")
            assert max(map(len, text.splitlines())) <= LONGEST_LINE
    ruff("format", "--diff", place=tmp_path)
    ruff("check", "--select", "E,F,I", "--ignore", "F821", place=tmp_path)


def test_a_name_is_for_one_thing() -> None:
    names = SourceNames(["size", "size_", "unpack_i", "UUID"])
    given = [
        *(names.local(one) for one in ("size", "size_", "unpack_i", "UUID")),
        names.shared("format", "unpack_i"),
        names.shared("class", "unpack_i"),
        names.shared("class", "UUID"),
        names.shared("class", "None"),
    ]
    assert given[1] == "size_"
    assert len({*given, *OWN, "None"}) == len(given) + len(OWN) + 1
    assert names.shared("format", "unpack_i") == given[4]


LITERALS: list[Any] = [
    *map("".join, itertools.product("'\"\\a\n\xff\u2028", repeat=3)),
    *map(bytes, itertools.product(b"'\"\\a\n\xff", repeat=3)),
    *(0.0, -0.0, 1.5, 1e300, -1e-300, 1e16, 1e22, 1e-5, 2.5e-8),
    *(None, True, False, 0, -1, 2**63),
]


def test_literals_are_what_they_say_as_ruff_would_write_them(tmp_path: Path) -> None:
    assert [repr(ast.literal_eval(literal(one))) for one in LITERALS] == list(map(repr, LITERALS))
    for number in (math.inf, -math.inf, math.nan):
        assert str(eval(literal(number))) == str(number)  # noqa: S307 - flexwire has just written the text
    lines = (f"a = {literal(one)}\n" for one in (*LITERALS, math.inf, math.nan))
    (tmp_path / "literals.py").write_text("".join(lines), encoding="utf-8")
    ruff("format", "--diff", place=tmp_path)


@pytest.mark.parametrize("rest", [b"", b"\x01", b"\x7f", b"\xff\xff\x01", b"\xff\xff\x0f"])
def test_a_count_is_the_varint_that_the_wire_types_read(rest: bytes) -> None:
    for first in itertools.product(range(256), repeat=2):
        raw = bytes(first) + rest
        try:
            expected = read_unsigned_varint(raw, 0, len(raw))
        except DecodeError:
            with pytest.raises((Refusal, IndexError)):
                read_count(raw, 0)
        else:
            assert read_count(raw, 0) == expected


@pytest.mark.parametrize("bits", range(32))
def test_a_length_is_the_varint_that_the_wire_types_write(bits: int) -> None:
    for length in range(max(0, 2**bits - 3), min(2**bits + 3, 2**31)):
        raw = write_unsigned_varint(length + 1)
        assert write_length(length) == raw
        assert read_length(raw, 0) == read_count(raw, 0) == (length + 1, len(raw))
        if length < 2**15:
            assert write_string_length(length) == raw
            assert read_string_length(b"#" + raw, 1) == (length + 1, len(raw) + 1)
        else:
            with pytest.raises(Refusal):
                write_string_length(length)
            with pytest.raises(Refusal):
                read_string_length(raw, 0)


@pytest.mark.parametrize("number", [0, 1, 2**63 - 1, 2**63, 2**127, 2**128 - 1])
def test_a_uuid_is_the_one_that_its_class_makes(number: int) -> None:
    expected = UUID(int=number)
    made_up = to_uuid(expected.bytes)
    assert type(made_up) is UUID
    assert (made_up, made_up.is_safe, hash(made_up)) == (expected, expected.is_safe, hash(expected))
    assert pickle.dumps(made_up) == pickle.dumps(expected)


@pytest.mark.parametrize("count", [0, 1, 127, 128, 129, 5000])
def test_many_numbers_are_what_struct_makes_of_them(count: int) -> None:
    numbers = list(range(-count, count, 2))
    raw = struct.pack(f">{count}i", *numbers)
    assert packers_of_many("hB", "i")[count](7, 8, *numbers) == b"\0\x07\x08" + raw
    for less in (0, 1):
        unpack = unpackers_of_many("i", less)[count + less]
        assert [*unpack(b"#" + raw, 1)] == numbers
        if count:
            with pytest.raises(struct.error):
                unpack(raw, 1)


def test_how_many_numbers_there_were_before_is_kept_only_of_few() -> None:
    table = unpackers_of_many("q")
    for count in (*range(2000), 2**31 - 1):
        assert table[count] is not None
    assert len(table) <= 128
    assert unpackers_of_many("q") is table
    for negative in (-1, -(2**31)):
        with pytest.raises(Refusal):
            table[negative]
    with pytest.raises(Refusal):
        unpackers_of_many("q", 1)[0]


ROW = [field("flag", "bool"), field("id", "uuid"), field("number", "int16"), field("flags", "bool")]
ROWS: Any = {
    "in order": [field("number", "int32"), field("flag", "bool")],
    "with more than numbers": ROW,
    "with a field that a version lacks": [
        {**field("late", "int8"), "versions": "2+", "default": "3"},
        *ROW,
    ],
    "with a known tagged field": [*ROW, {**field("rack", "string", 0), "ignorable": True}],
    "with an array that a version lacks": [{**field("late", "[]int8"), "versions": "3+"}, *ROW],
}


def outcome(function: Any, *given: Any, **named: Any) -> Any:
    try:
        return function(*given, **named)
    except (DecodeError, EncodeError) as error:
        return str(error)


def decoded_alike(definition: Any, data: bytes, version: int) -> None:
    expected = outcome(definition.decode_reference, data, version)
    assert outcome(definition.decode, data, version, 0, lenient=False) == expected


@pytest.mark.slow
@pytest.mark.parametrize("after", [[], [field("end", "int8")]], ids=["last", "not last"])
@pytest.mark.parametrize("fields", ROWS.values(), ids=ROWS)
def test_rows_are_read_and_written_as_by_the_reference(
    fields: list[dict[str, Any]], after: list[dict[str, Any]]
) -> None:
    kind: Any = made([{**field("rows", "[]Row"), "fields": fields}, *after])
    definition = kind.definition
    for version, seed in itertools.product((0, 1, 2), range(times(6))):
        value = random_message(kind, version, seed)
        if seed % 3 == 0:
            for row in value.rows[seed % 2 :]:
                row.unknown_tagged_fields = {}
        raw = definition.encode_reference(value, version)
        assert definition.encode_generated(value, version) == raw
        for at, byte in itertools.product(range(len(raw)), (0, 1, 2, 0xFF)):
            damaged = raw[:at] + bytes([byte]) + raw[at + 1 :]
            decoded_alike(definition, damaged, version)
            decoded_alike(definition, damaged[:at], version)


@pytest.mark.parametrize("wrong", [None, 1, {"number": 1}])
def test_a_row_that_is_no_object_of_its_class_is_judged_by_the_reference(wrong: Any) -> None:
    late = {**field("late", "int8"), "versions": "2+"}
    kind: Any = made([{**field("rows", "[]Row"), "fields": [*ROW, late]}])
    definition, row = kind.definition, kind.definition.classes["Row"]
    others = [row(flag=1), row(id="x"), row(number=2**15), row(late=1), row(late=1.5)]
    for one, version in itertools.product([wrong, *others], (0, 2)):
        value = kind(rows=[row(), one])
        expected = outcome(definition.encode_reference, value, version)
        assert outcome(definition.encode, value, version) == expected


@pytest.mark.parametrize("kind", ["string", "bytes", "[]int16", "[]bool", "[]uuid", "[]string"])
@pytest.mark.parametrize("before", [[], ["int32"], ["string"]], ids=str)
def test_a_last_field_that_is_cut_is_refused(kind: str, before: list[str]) -> None:
    names = [field(f"before_{at}", one) for at, one in enumerate(before)]
    definition: Any = made([*names, field("last", kind)]).definition
    tagged: Any = made([*names, {**field("last", kind, 0), "ignorable": True}]).definition
    for one, version, seed in itertools.product((definition, tagged), (0, 2), range(4)):
        raw = one.encode_reference(random_message(one.root, version, seed), version)
        for at in range(len(raw)):
            decoded_alike(one, raw[:at], version)
            decoded_alike(one, raw[:at] + bytes([raw[at] + 1 & 0xFF]) + raw[at + 1 :], version)
            decoded_alike(one, raw[:at] + bytes([raw[at] - 1 & 0xFF]) + raw[at + 1 :], version)


@pytest.mark.long
@pytest.mark.slow
def test_thousands_of_tagged_fields_compile() -> None:
    many: Any = made([field(f"t{tag}", "int8", tag) for tag in range(5000)], valid="2-2")
    value = many(t0=1, t4999=2)
    raw = many.definition.encode_generated(value, 2)
    assert many.decode(raw, 2) == value
    assert many.definition.encode_reference(value, 2) == raw


@pytest.mark.long
@pytest.mark.slow
def test_thousands_of_fields_of_fixed_width_compile() -> None:
    many: Any = made([field(f"f{at}", "int32" if at % 2 else "int64") for at in range(5000)])
    value = many(f0=1, f4999=2)
    raw = many.definition.encode_generated(value, 0)
    assert (len(raw), many.decode(raw, 0)) == (30_000, value)
    for text in generated_source(many.definition, 0).values():
        assert max(map(len, text.splitlines())) <= LONGEST_LINE


@pytest.mark.parametrize("count", [1, LONGEST_RUN - 1, LONGEST_RUN, LONGEST_RUN + 1, 50])
def test_numbers_are_read_and_written_in_runs_that_are_as_long_as_possible(count: int) -> None:
    kind = made([field(f"number_{at}", "int32") for at in range(count)])
    whole, rest = divmod(count, LONGEST_RUN)
    runs = {length for length in (LONGEST_RUN * (whole > 0), rest) if length}
    for text in generated_source(kind.definition, 0).values():
        assert {len(codes) for codes in re.findall(r'Struct\(">(i+)"\)', text)} == runs


def test_an_array_that_is_null_by_default_is_left_out() -> None:
    names = {**field("names", "[]string", 0), "nullableVersions": "0-1", "default": "null"}
    one: Any = made([names])
    assert one.definition.encode_generated(one(), 2) == b"\x00"
    assert one.definition.encode_generated(one(names=["a"]), 2) == b"\x01\x00\x03\x02\x02a"


@pytest.mark.parametrize("version", [0, 2])
def test_a_string_of_one_byte_too_many_is_refused(version: int) -> None:
    one: Any = made([field("text", "string")])
    raw = one(text="x" * 32767).encode(version)
    assert one.definition.decode(raw, version, 0, lenient=False)[1] == len(raw)
    with pytest.raises(EncodeError, match="at most 32767"):
        one(text="x" * 32768).encode(version)
    with pytest.raises(DecodeError, match="a string of at most 32767 bytes, got 32768"):
        one.decode(b"\x81\x80\x02" + b"x" * 32768 + b"\x00", 2)
