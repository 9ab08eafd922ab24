from __future__ import annotations

import json
from dataclasses import replace

from flexwire.schema.catalog import catalog
from flexwire.schema.parse import parse_spec
from flexwire.schema.spec import FieldSpec, FieldType, MessageSpec, MessageType, StructSpec
from flexwire.schema.write import write_spec, write_specs
from flexwire.versions import Versions
from tests.each import each


def field(name: str, **facts: object) -> FieldSpec:
    one = FieldSpec(name=name, type=FieldType("string"), versions=Versions(0, 2))
    return replace(one, **facts)  # type: ignore[arg-type]  # the facts are of many types


# Every fact that a spec can state, each different from its default.
WHOLE = MessageSpec(
    name="FooRequest",
    type=MessageType.REQUEST,
    valid_versions=Versions(0, 3),
    flexible_versions=Versions.parse("1+"),
    api_key=7,
    deprecated_versions=Versions(0, 0),
    listeners=("broker", "controller"),
    latest_version_unstable=True,
    common_structs=(
        StructSpec("Common", Versions(1, 3), (field("Id"),), deprecated_versions=Versions(1, 1)),
        StructSpec("Empty", Versions(1, 3), ()),
    ),
    fields=(
        field("Tagged", tag=0, tagged_versions=Versions.parse("2+"), default='a "b"\n\ud800é'),
        field("Nullable", nullable_versions=Versions(1, 1), default="null", ignorable=True),
        field("Fixed", flexible_versions=Versions.NONE, entity_type="topicName"),
        field("Zero", type=FieldType("bytes"), zero_copy=True, versions=Versions.NONE),
        field(
            "Nested",
            type=FieldType("Nested", is_array=True),
            fields=(field("Key", map_key=True), field("One", type=FieldType("Common"))),
        ),
    ),
)


def test_what_is_written_reads_back() -> None:
    assert parse_spec(write_spec(WHOLE), mode="strict") == WHOLE


def test_prose_is_not_written() -> None:
    spoken = replace(WHOLE, fields=tuple(replace(one, about="Words.") for one in WHOLE.fields))
    assert write_spec(spoken) == write_spec(WHOLE)


def test_a_field_is_a_line() -> None:
    lines = write_spec(WHOLE).splitlines()
    for one in WHOLE.walk():
        assert sum(f'"name": "{one.name}"' in line for line in lines) >= 1
        assert not any(line.count('"name": ') > 1 for line in lines)


def test_a_spec_without_fields_is_plain_json() -> None:
    bare = replace(WHOLE, fields=(), common_structs=())
    assert json.loads(write_spec(bare))["fields"] == []
    assert parse_spec(write_spec(bare), mode="strict") == bare


def test_several_specs_are_an_array() -> None:
    other = replace(WHOLE, valid_versions=Versions(0, 1))
    texts = json.loads(write_specs([WHOLE, other]))
    assert [parse_spec(json.dumps(text), mode="strict") for text in texts] == [WHOLE, other]
    assert write_specs([WHOLE]) == write_spec(WHOLE)


@each("name", catalog().names())
def test_every_bundled_file_is_as_it_is_written(name: str) -> None:
    entry = catalog().entry(name)
    specs = entry.all_specs()
    path = catalog().root / entry.module / f"{name}.json"
    assert write_specs(specs) == path.read_text(encoding="utf-8")
    for spec in specs:
        assert parse_spec(write_spec(spec), mode="strict") == spec
