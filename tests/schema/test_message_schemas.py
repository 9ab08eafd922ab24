"""One function decides which schema serves a version, and another forms the union of fields."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from flexwire.codec import message, message_of
from flexwire.columnar import message_type
from flexwire.errors import SpecError, UnknownMessageError
from flexwire.schema.catalog import catalog
from flexwire.schema.message_schemas import MessageSchemas, SingleSpec, schemas_of
from flexwire.schema.parse import parse_spec
from flexwire.versions import Versions
from flexwire.wire.encoding import Encoding
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, Schema, struct_of

if TYPE_CHECKING:
    from flexwire.schema.resolve import Fields, ServedSpec
    from flexwire.schema.spec import MessageSpec


def spec_of(versions: str, *fields: dict[str, Any], name: str = "Foo") -> MessageSpec:
    spec = {"type": "data", "name": name, "validVersions": versions, "flexibleVersions": "none"}
    return parse_spec(json.dumps(spec | {"fields": fields}))


def field(name: str, kind: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "type": kind, "versions": "0+", **({"fields": fields} if fields else {})}


class Several(SingleSpec):
    """Specs of one message that each serve a version, newest first."""

    def __init__(self, *specs: MessageSpec) -> None:
        super().__init__(specs[0])
        self.each = specs
        self.releases = {"4.0.0": Versions.of(v for one in specs for v in one.valid_versions)}

    def specs(self) -> tuple[ServedSpec, ...]:
        return tuple((one, one.valid_versions) for one in self.each)

    def spec(self, version: int, release: str | None = None) -> MessageSpec:
        del release
        return next(one for one in self.each if version in one.valid_versions)


def test_a_name_its_class_and_its_spec_are_served_by_the_same_schemas() -> None:
    made = message("MetadataRequest")
    older = message("MetadataRequest", "3.8.1")
    spec = spec_of("0-1", field("At", "int64"))
    assert schemas_of("MetadataRequest") is schemas_of(made) is made.definition.served
    assert schemas_of("MetadataRequest", "3.8.1") is schemas_of(older)
    assert schemas_of(older) is not schemas_of(made)
    assert schemas_of(spec) is schemas_of(message_of(spec))
    # Equal layouts share one schema.
    for served in (schemas_of(made), schemas_of(older)):
        assert served.schema(9) is served.schema(9, Encoding.FLEXIBLE)
        assert served.schema(9) is not served.schema(9, Encoding.FIXED)


def test_what_is_not_served_is_an_error() -> None:
    spec = spec_of("0-1", field("At", "int64"))
    with pytest.raises(UnknownMessageError, match="Foo has no version 2; it has 0-1"):
        schemas_of(spec).schema(2)
    with pytest.raises(UnknownMessageError, match="Foo is not a bundled message; it has no rel"):
        MessageSchemas(SingleSpec(spec), "4.0.2").schema(1)
    with pytest.raises(UnknownMessageError, match=r"is not in 2\.4\.1; it is in"):
        message("ShareFetchRequest", "2.4.1")
    with pytest.raises(TypeError, match="message: expected a message's name, its spec or"):
        schemas_of(int)


def listed(schema: Schema, found: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the attributes of a schema's structures, by name."""
    if schema.name not in found:
        found[schema.name] = [one.attribute for one in schema.fields]
        for one in schema.fields:
            inner = struct_of(one.type)
            if inner is not None:
                listed(inner, found)
    return found


def held(kind: pa.DataType, fields: Fields, name: str) -> None:
    """Compare a struct of columns with a structure's fields, and nested structs with theirs."""
    assert [one.name for one in kind] == [*fields[name], UNKNOWN_TAGGED_FIELDS]
    for one, mentions in zip(kind, fields[name].values(), strict=False):
        inner = one.type.value_type if pa.types.is_list(one.type) else one.type
        # Some structures have no fields.
        if pa.types.is_struct(inner):
            held(inner, fields, mentions[0][0].type.name)


@pytest.mark.slow
def test_classes_columns_and_schemas_have_the_fields_of_one_union() -> None:
    elsewhere = 0
    for name in catalog().names():
        newest = catalog().entry(name).last_release
        for made in (message(name), message(name, newest)):
            served = made.definition.served
            for struct, kind in made.definition.classes.items():
                fields = [*served.fields[struct], UNKNOWN_TAGGED_FIELDS]
                assert list(kind.__struct_fields__) == fields
            assert made.definition.classes.keys() == served.fields.keys()
            held(message_type(made), served.fields, name)
            for version in Versions.of(one for _, valid in served.specs for one in valid):
                own = served.entry.spec(version, served.release)
                structs = own.structs() | {name: own.fields}
                for struct, attributes in listed(served.schema(version), {}).items():
                    mine = [one.attribute for one in structs.get(struct, ())]
                    others = [one for one in served.fields[struct] if one not in mine]
                    assert attributes == [*mine, *others]
                    elsewhere += len(others)
    assert elsewhere


def test_the_newest_spec_gives_order_and_default_and_the_widest_type_the_column() -> None:
    older = spec_of("0", field("Gone", "int8"), field("Size", "int64"), field("At", "int16"))
    newer = spec_of("1", {**field("At", "int32"), "default": "-1"}, field("Size", "uint16"))
    served = MessageSchemas(Several(newer, older))
    assert list(served.fields["Foo"]) == ["at", "size", "gone"]
    assert [one.attribute for one in served.schema(1).fields] == ["at", "size", "gone"]
    assert [one.attribute for one in served.schema(0).fields] == ["gone", "size", "at"]
    assert served.schema(0).absent == ()
    kind = message_type(class_of(served))
    assert [str(one.type) for one in kind][:3] == ["int32", "int64", "int8"]
    assert class_of(served)().at == -1


def test_a_release_s_newest_versions_give_the_order_and_absent_fields_follow_it() -> None:
    specs = [spec_of(str(at), field(f"F{at}", "int8"), field("Id", "int8")) for at in (3, 2, 1, 0)]
    several = Several(*specs)
    for served in (MessageSchemas(several), MessageSchemas(several, "4.0.0")):
        assert served.specs == tuple((one, one.valid_versions) for one in specs)
        assert list(served.fields["Foo"]) == ["f3", "id", "f2", "f1", "f0"]
        assert [one.attribute for one in served.schema(1).fields] == ["f1", "id", "f3", "f2", "f0"]
    # A schema whose versions are below and above those of another schema is listed once, with all
    # its versions.
    around, between = spec_of("0-2", field("A", "int8")), spec_of("1", field("B", "int8"))
    served = MessageSchemas(Several(between, around), "4.0.0")
    assert served.specs == ((around, Versions.of([0, 2])), (between, Versions(1, 1)))


def class_of(served: MessageSchemas) -> Any:
    from flexwire.codec.definition import Definition  # noqa: PLC0415 - used here alone
    from flexwire.codec.message import Message  # noqa: PLC0415 - used here alone

    def restore() -> Any:
        raise AssertionError

    return Definition(served, Message, module=__name__, restore=(restore, ())).root


def test_specs_that_have_nothing_in_common_have_no_column() -> None:
    kind, other = field("Inner", "Inner", field("At", "int8")), field("Inner", "string")
    with pytest.raises(SpecError, match=r"^Foo\.inner: the types struct<.*>, string have no comm"):
        message_type(class_of(MessageSchemas(Several(spec_of("1", kind), spec_of("0", other)))))
    # In the newer spec A contains B, and in the older spec B contains A.
    newer = spec_of("1", field("A", "A", field("B", "B", field("At", "int8"))))
    older = spec_of("0", field("B", "B", field("A", "A", field("At", "int8"))))
    with pytest.raises(SpecError, match=r"structure . contains itself"):
        class_of(MessageSchemas(Several(newer, older)))


def test_structures_that_hold_each_other_in_two_specs_have_no_columns() -> None:
    inner = field("At", "int8")
    newer = spec_of("1", field("A", "A", field("B", "B", inner)))
    older = spec_of("0", field("B", "B", field("A", "A", inner)))

    class Definition:
        served = MessageSchemas(Several(newer, older))

    class Made:
        definition = Definition

    with pytest.raises(SpecError, match=r"Foo: structure . contains itself"):
        message_type(Made)
