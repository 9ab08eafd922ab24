"""Every field of every version of every message is on its page, with the facts of `resolve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexwire.errors import SpecError
from flexwire.protocol.headers import request_header_version, response_header_version
from flexwire.schema.catalog import catalog
from flexwire.schema.pairs import same_bytes
from flexwire.schema.resolve import ZERO_UUID, resolve
from flexwire.schema.spec import MessageType
from flexwire.specs.guide import own_messages
from flexwire.specs.guide.rows import CharacterBudget, make_rows, wire_form
from flexwire.wire.schema import Field, NullableStruct, Presence, Schema, struct_of
from flexwire.wire.types import ArrayType
from tests.each import each
from tests.guide.built import messages, page_of, tables
from tests.guide.specs import edition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import FieldSpec

NAMES = catalog().names()
# Written by hand, because the page has its own texts for defaults.
DEFAULTS = {None: "null", (): "[]", "": '""', b"": '""', True: "true", False: "false"}


def walk(schema: Schema, path: str = "") -> Iterator[tuple[str, str, Field]]:
    """Yield every field of the version, with its path and the name of its structure."""
    tagged = sorted(
        (one for one in schema.fields if one.presence is Presence.TAGGED),
        key=lambda one: one.tag or 0,
    )
    inline = [one for one in schema.fields if one.presence is Presence.INLINE]
    for one in inline + tagged:
        yield path + one.name, schema.name, one
        inside = struct_of(one.type)
        if inside:
            yield from walk(inside, f"{path}{one.name}.")


def default_text(value: object) -> str:
    if value == ZERO_UUID:
        return "zero uuid"
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, bool | None | tuple | bytes) or value == "":
        return DEFAULTS[value]
    return f'"{value}"' if isinstance(value, str) else str(value)


def wire_words(one: Field) -> str:
    kind = one.type.element if isinstance(one.type, ArrayType) else one.type
    within = "structure" if isinstance(kind, Schema | NullableStruct) else kind.name
    return f"{one.type.name} of {within}" if isinstance(one.type, ArrayType) else within


@pytest.mark.long
@pytest.mark.slow
@each("name", NAMES)
def test_a_page_has_every_field_of_every_version(name: str) -> None:
    entry = catalog().entry(name)
    shown = tables(page_of(name))
    side = entry.type.value
    expected: list[str] = []
    for version in entry.versions:
        spec = entry.spec(version)
        specs: dict[tuple[str, str], FieldSpec] = {
            (struct, one.name): one
            for struct, fields in (spec.structs() | {spec.name: spec.fields}).items()
            for one in fields
        }
        for path, struct, one in walk(resolve(spec, version)):
            place = f"v{version}-{side}-{path}"
            expected.append(place)
            row = shown[place]
            label, type_, wire, default, _, versions = row.cells
            assert label == path.rpartition(".")[2]
            assert type_ == str(specs[struct, one.name].type)
            assert wire.startswith(wire_words(one)), place
            assert default == default_text(one.default), place
            assert ("nullable" in row.chips) == one.nullable, place
            tags = [chip for chip in row.chips if chip.startswith("tag ")]
            assert tags == ([] if one.tag is None else [f"tag {one.tag}"]), place
            assert ("ignorable" in row.chips) == one.ignorable
            assert ("map key" in row.chips) == specs[struct, one.name].map_key
            assert has(versions, version), (place, versions)
    # Pages begin with the highest version.
    marks = [(version, f"v{version}-{side}-") for version in entry.versions]
    assert [place for _, mark in marks for place in shown if place.startswith(mark)] == expected


def has(versions: str, version: int) -> bool:
    for part in versions.split(","):
        low, _, high = part.rstrip("+").partition("-")
        highest = 32767 if part.endswith("+") else int(high or low)
        if int(low) <= version <= highest:
            return True
    return False


def test_header_versions_and_flexibility_are_those_of_the_protocol() -> None:
    for name in NAMES:
        entry = catalog().entry(name)
        for version in messages()[name].versions:
            assert version.flexible == resolve(entry.spec(version.number), version.number).flexible
            if entry.type is MessageType.REQUEST and entry.api_key is not None:
                assert version.header == request_header_version(entry.api_key, version.number)
            elif entry.type is MessageType.RESPONSE and entry.api_key is not None:
                assert version.header == response_header_version(entry.api_key, version.number)
            else:
                assert version.header is None


def test_exceptions_of_headers_hold_for_specs_of_one_s_own() -> None:
    """The response to ApiVersions never has a tag section, whatever a user's own api key is."""
    made = own_messages(
        edition("XResponse", "response", apiKey=18, flexibleVersions="1+")
        | edition("YResponse", "response", apiKey=9999, flexibleVersions="1+")
        | edition("YRequest", "request", apiKey=9999, flexibleVersions="1+")
        | edition("ZRequest", "request", apiKey=7, flexibleVersions="1+")
        # Kafka's Fetch is flexible from version 12, and the spec of this test from version 1.
        | edition("FetchRequest", "request", apiKey=1, flexibleVersions="1+")
    )
    headers = {one.name: [version.header for version in one.versions] for one in made}
    assert headers == {
        "XResponse": [0, 0, 0],
        "YResponse": [0, 1, 1],
        "YRequest": [1, 2, 2],
        "ZRequest": [0, 2, 2],
        "FetchRequest": [1, 2, 2],
    }


def test_rows_are_written_out_only_as_far_as_there_is_room() -> None:
    """Twenty structures that each contain the next one twice do not make a million rows."""
    depth = 20
    structs = [
        {
            "name": f"S{at}",
            "versions": "0+",
            "fields": [
                {"name": name, "type": f"S{at + 1}" if at < depth else "int8", "versions": "0+"}
                for name in ("A", "B")
            ],
        }
        for at in range(depth + 1)
    ]
    fields = [{"name": "X", "type": "S0", "versions": "0+"}]
    wide = edition("Wide", "data", commonStructs=structs, fields=fields)
    with pytest.raises(SpecError, match=r"Wide.*more than 1,000,000 characters"):
        own_messages(wide)


def test_a_room_is_used_up_by_all_versions_together() -> None:
    about = "x" * 900
    fields = [
        {"name": f"F{at}", "type": "int8", "versions": "0+", "about": about} for at in range(60)
    ]
    fits = edition("Fits", "data", validVersions="0-15", fields=fields)
    assert len(own_messages(fits)[0].versions) == 16
    with pytest.raises(SpecError, match=r"Large\.json.*fields of all versions together"):
        own_messages(edition("Large", "data", validVersions="0-16", fields=fields))


def test_more_versions_than_can_be_compared_are_refused() -> None:
    own_messages(edition("Hundred", "data", validVersions="0-99"))
    with pytest.raises(SpecError, match=r"Many\.json: the message has more than 100 versions"):
        own_messages(edition("Many", "data", validVersions="0-100"))


def test_what_a_row_says_of_a_nullable_structure() -> None:
    inner = [{"name": "B", "type": "int8", "versions": "0+"}]
    fields = [
        {"name": "One", "type": "S", "versions": "0+", "nullableVersions": "0+", "fields": inner},
        {
            "name": "Two",
            "type": "T",
            "versions": "1+",
            "nullableVersions": "1+",
            "tag": 3,
            "taggedVersions": "1+",
            "fields": inner,
        },
        {"name": "Id", "type": "uuid", "versions": "2+", "default": "AAAAAAAAAAAAAAAAAAAAAQ"},
        {
            "name": "Text",
            "type": "string",
            "versions": "2+",
            "default": "a\u202eb",
            "about": "\u0000",
        },
    ]
    spec = edition("M", "data", flexibleVersions="1+", fields=fields)["M"].spec
    present = {(name, one.attribute): "" for name in ("M", "S", "T") for one in spec.walk()}
    rows = make_rows(spec, resolve(spec, 2), present, CharacterBudget("M"))
    told = [(row.path, row.depth, row.wire, row.default, row.properties) for row in rows]
    assert told == [
        ("One", 0, "structure after an int8: -1 for null, else 1", "{}", ("nullable",)),
        ("One.B", 1, "INT8", "0", ()),
        ("Id", 0, "UUID", '"AAAAAAAAAAAAAAAAAAAAAQ"', ()),
        ("Text", 0, "COMPACT_STRING", '"a\\u202eb"', ()),
        ("Two", 0, "structure after a varint: 0 for null, else 1", "{}", ("nullable", "tag 3")),
        ("Two.B", 1, "INT8", "0", ()),
    ]
    assert rows[3].about == "\\u0000"


FIELD = {"name": "A", "type": "int32", "versions": "0+"}
STRUCT = {"name": "A", "type": "[]S", "versions": "0+"}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ([FIELD], [{**FIELD, "name": "B", "default": "5", "ignorable": True}], True),
        ([FIELD], [{**FIELD, "type": "int64"}], False),
        ([FIELD], [{**FIELD, "type": "uint32"}], False),
        ([FIELD], [FIELD, {**FIELD, "name": "B"}], False),
        ([FIELD], [{**FIELD, "versions": "2+"}], False),
        ([{**FIELD, "type": "bytes"}], [{**FIELD, "type": "records"}], True),
        ([{**FIELD, "type": "bytes"}], [{**FIELD, "type": "string"}], False),
        (
            [{**FIELD, "type": "string"}],
            [{**FIELD, "type": "string", "nullableVersions": "0+"}],
            False,
        ),
        (
            [{**FIELD, "type": "string"}],
            [{**FIELD, "type": "string", "flexibleVersions": "none"}],
            False,
        ),
        ([{**STRUCT, "fields": [FIELD]}], [{**STRUCT, "type": "[]T", "fields": [FIELD]}], True),
        ([{**STRUCT, "fields": [FIELD]}], [{**STRUCT, "type": "S", "fields": [FIELD]}], False),
        (
            [{**STRUCT, "fields": [FIELD]}],
            [{**STRUCT, "fields": [{**FIELD, "type": "int8"}]}],
            False,
        ),
        ([{**FIELD, "tag": 0, "taggedVersions": "1+"}], [FIELD], False),
        (
            [{**FIELD, "tag": 0, "taggedVersions": "1+"}],
            [{**FIELD, "tag": 1, "taggedVersions": "1+"}],
            False,
        ),
    ],
)
def test_which_specs_have_the_same_bytes(
    one: list[dict[str, object]], other: list[dict[str, object]], *, same: bool
) -> None:
    schemas = [
        resolve(edition("M", "data", flexibleVersions="1+", fields=fields)["M"].spec, 1)
        for fields in (one, other)
    ]
    assert same_bytes(*schemas) is same
    assert same_bytes(*reversed(schemas)) is same


def test_flexible_and_not_are_never_the_same_bytes() -> None:
    spec = edition("M", "data", flexibleVersions="1+")["M"].spec
    assert not same_bytes(resolve(spec, 0), resolve(spec, 1))
    assert same_bytes(resolve(spec, 1), resolve(spec, 2))


def test_structures_that_share_structures_are_compared_in_no_time() -> None:
    """Each of these structures occurs twice in the one before, so there are 2**60 places."""
    schemas = []
    for _ in range(2):
        inner = resolve(edition("M", "data")["M"].spec, 0)
        for at in range(60):
            inner = Schema(Field("a", inner), Field("b", inner), name=f"S{at}")
        schemas.append(inner)
    assert same_bytes(*schemas)


def test_every_wire_form_of_the_catalog_is_in_plain_words() -> None:
    forms = {row.wire for one in messages().values() for at in one.versions for row in at.rows}
    assert "COMPACT_NULLABLE_ARRAY of COMPACT_STRING" in forms
    assert len(forms) == len({form.replace("_", " ") for form in forms})
    assert wire_form(resolve(edition("M", "data")["M"].spec, 0)) == "structure"
