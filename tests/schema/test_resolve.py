"""Only resolve decides presence, compactness, nullability, tags and defaults."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest

import flexwire
from flexwire.errors import SpecError
from flexwire.schema.catalog import catalog
from flexwire.schema.parse import parse_spec
from flexwire.schema.resolve import parse_default, resolve
from flexwire.wire import types
from flexwire.wire.schema import Field, NullableStruct, Presence, Schema


def spec_of(*fields: dict[str, Any], flexible: str = "2+") -> Any:
    return parse_spec(
        json.dumps(
            {
                "type": "data",
                "name": "Foo",
                "validVersions": "0-9",
                "flexibleVersions": flexible,
                "fields": list(fields),
            }
        )
    )


def only(spec: Any, version: int) -> Any:
    (one,) = resolve(spec, version).fields
    return one


NAME = {"name": "Name", "type": "string", "versions": "1+", "nullableVersions": "3+"}


@pytest.mark.parametrize(
    ("version", "presence", "kind"),
    [
        (0, Presence.ABSENT, types.STRING),
        (1, Presence.INLINE, types.STRING),
        (2, Presence.INLINE, types.COMPACT_STRING),
        (3, Presence.INLINE, types.COMPACT_NULLABLE_STRING),
    ],
)
def test_presence_compactness_and_nullability(
    version: int, presence: Presence, kind: types.Type
) -> None:
    one = only(spec_of(NAME), version)
    assert (one.presence, one.type, one.tag) == (presence, kind, None)


def test_a_field_s_own_flexible_versions_replace_the_message_s() -> None:
    assert only(spec_of({**NAME, "flexibleVersions": "none"}), 9).type == types.NULLABLE_STRING
    header = resolve(catalog().entry("RequestHeader").spec(2), 2)
    assert header.flexible
    client_id = next(one for one in header.fields if one.json_name == "clientId")
    assert client_id.type == types.NULLABLE_STRING


def test_a_tagged_field_is_compact_whatever_an_override_says() -> None:
    tagged = {"taggedVersions": "4+", "tag": 0, "nullableVersions": "4+"}
    one = only(spec_of({**NAME, **tagged, "versions": "4+", "flexibleVersions": "none"}), 4)
    assert (one.presence, one.tag) == (Presence.TAGGED, 0)
    assert one.type == types.COMPACT_NULLABLE_STRING


def test_a_nullable_struct_has_a_marker_only_where_it_is_nullable() -> None:
    inner = {"name": "Count", "type": "int32", "versions": "0+"}
    field = {"name": "Leader", "type": "Leader", "versions": "0+", "fields": [inner]}
    spec = spec_of({**field, "nullableVersions": "1+"})
    assert isinstance(only(spec, 0).type, Schema)
    assert isinstance(only(spec, 1).type, NullableStruct)


DEFAULTS: list[tuple[str, Any, Any]] = [
    ("bool", None, False),
    ("bool", "TRUE", True),
    ("int8", "-128", -128),
    ("int16", "0x7fff", 32767),
    ("uint16", "65535", 65535),
    ("int32", -1, -1),
    ("uint32", "4294967295", 4294967295),
    ("int64", "0x7fffffffffffffff", 2**63 - 1),
    ("float64", "1.5", 1.5),
    ("uuid", None, uuid.UUID(int=0)),
    ("uuid", "AAAAAAAAAAAAAAAAAAAAAQ", uuid.UUID(int=1)),
    ("string", None, ""),
    ("string", "hello world", "hello world"),
    ("bytes", None, b""),
    ("[]int32", None, ()),
    ("records", None, None),
]


@pytest.mark.parametrize(("kind", "text", "value"), DEFAULTS)
def test_defaults(kind: str, text: Any, value: Any) -> None:
    field = {"name": "One", "type": kind, "versions": "0+"}
    spec = spec_of({**field, "default": text} if text is not None else field)
    assert parse_default(spec.fields[0]) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("bool", "yes"),
        ("int8", "128"),
        ("int8", "0x80"),
        ("uint16", "-1"),
        ("int32", "1.0"),
        ("float64", "much"),
        ("uuid", "AAAA"),
        ("bytes", "abc"),
        ("[]int32", "1"),
    ],
)
def test_a_default_that_does_not_fit_is_an_error_with_its_place(kind: str, text: str) -> None:
    spec = spec_of({"name": "One", "type": kind, "versions": "0+", "default": text})
    with pytest.raises(SpecError, match=re.escape(f"default {text!r} is not a {kind}")) as caught:
        resolve(spec, 0)
    assert caught.value.line > 0


def test_a_structure_inside_itself_is_refused() -> None:
    inner = {"name": "Again", "type": "Node", "versions": "0+"}
    node = {"name": "Node", "type": "Node", "versions": "0+", "fields": [inner]}
    with pytest.raises(SpecError, match="structure Node contains itself"):
        resolve(spec_of(node), 0)


def test_a_structure_without_fields_anywhere_is_refused() -> None:
    with pytest.raises(SpecError, match="structure Ghost is never defined"):
        resolve(spec_of({"name": "One", "type": "Ghost", "versions": "0+"}), 0)


def test_a_tag_in_an_inflexible_version_is_refused() -> None:
    tagged = {**NAME, "taggedVersions": "1+", "tag": 0, "nullableVersions": "1+"}
    with pytest.raises(SpecError, match="tagged in version 1, which is not flexible"):
        resolve(spec_of(tagged), 1)


def test_the_least_size_of_structures_that_double_is_found_at_once() -> None:
    # Each structure holds the next one twice: 60 descriptions make 2 ** 60 structures of one byte.
    inner: Schema | None = None
    for _ in range(60):
        kind = types.INT8 if inner is None else inner
        inner = Schema(Field("left", kind), Field("right", kind), name="Pair")
    assert inner is not None
    assert inner.least_size == 2**60


@pytest.mark.slow
def test_every_released_message_and_version_resolves() -> None:
    pairs = 0
    for entry in map(catalog().entry, catalog().names()):
        for version in entry.versions:
            assert resolve(entry.spec(version), version).name == entry.name
            pairs += 1
    assert pairs >= 917


def test_no_other_file_decides_what_resolve_decides() -> None:
    # Words that code uses to decide such facts.
    words = re.compile(r"\.(nullable|tagged|flexible)_versions\b|\bin (one|field)\.versions\b")
    root = Path(flexwire.__file__).parent
    may = {
        "schema/resolve.py",
        # These modules read, write or list the spec's text, and apply none of these facts to a
        # version.
        "schema/spec.py",
        "schema/parse.py",
        "schema/write.py",
        "schema/catalog.py",
        "schema/message_schemas.py",
        "schema/history.py",
        "schema/importer.py",
        # This module only derives the header's version from the flexible versions.
        "schema/header_versions.py",
        # These modules collect what a class, a column or a page must hold over all versions.
        "schema/sources.py",
        "schema/merge.py",
        "cli/schema_docs.py",
        # These modules write other specs.
        "schema/error_tags.py",
        "specs/cost/sides.py",
    }
    found = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        # Lint compares the ranges that a spec writes, whatever the version.
        if path.parent.name != "rules" and words.search(path.read_text(encoding="utf-8"))
    }
    assert found - may <= {"cli/schema_list.py", "protocol/headers.py"}
