"""Names do not affect the wire: a renamed field breaks JSON, but not bytes.

The result does not depend on which versions use the new name, or whether other versions keep the
old name.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

import pytest

from flexwire.schema.catalog import catalog
from flexwire.schema.editions import Edition
from flexwire.specs.breaking.changes import breaking_rules, find_changes
from flexwire.specs.breaking.rule import Breaks
from flexwire.versions import HIGHEST, Versions
from tests.each import each

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.schema.spec import FieldSpec, MessageSpec
    from flexwire.specs.breaking.changes import BreakingChange

pytestmark = pytest.mark.slow


@cache
def newest() -> list[MessageSpec]:
    """Return each message of a release, with its newest version laid out as in that release."""
    entries = [catalog().entry(name) for name in catalog().names()]
    return [
        replace(entry.spec(versions.highest), valid_versions=versions)
        for entry in entries
        if len(versions := entry.current_versions) > 1
    ]


SEVERAL = newest()


def split(one: FieldSpec, last: int) -> tuple[FieldSpec, ...]:
    """Return a field under another name up to a version, and under its own name afterwards."""
    whole = replace(one, fields=tuple(part for inner in one.fields for part in split(inner, last)))
    early, late = one.versions & Versions(0, last), one.versions & Versions(last + 1, HIGHEST)
    if one.tag is not None or not early:
        return (whole,)
    named = replace(whole, name=f"{one.name}Legacy", versions=early)
    # A second mention of a structure may leave out its fields.
    return (named, replace(one, versions=late, fields=())) if late else (named,)


def with_fields(spec: MessageSpec, change: Callable[[FieldSpec], tuple[FieldSpec, ...]]) -> Edition:
    structs = tuple(
        replace(struct, fields=tuple(part for one in struct.fields for part in change(one)))
        for struct in spec.common_structs
    )
    fields = tuple(part for one in spec.fields for part in change(one))
    return Edition(replace(spec, fields=fields, common_structs=structs))


def told(old: Edition, new: Edition) -> list[BreakingChange]:
    return find_changes(old, new, breaking_rules().values())


def renamed(spec: MessageSpec, last: int) -> set[int]:
    """Return the versions up to ``last`` that have an untagged field."""
    return {
        version
        for version in spec.valid_versions
        if version <= last
        and any(version in one.versions and one.tag is None for one in spec.fields)
    }


@pytest.mark.long
@each("spec", {spec.name: spec for spec in SEVERAL}, parts=5)
def test_a_name_that_lives_on_in_other_versions_is_renamed_in_these(spec: MessageSpec) -> None:
    old = Edition(spec)
    for last in spec.valid_versions:
        new = with_fields(spec, partial(split, last=last))
        for before, after in ((old, new), (new, old)):
            found = told(before, after)
            assert {one.rule.id for one in found} <= {"FIELD_RENAMED"}, (last, found)
            in_versions = {version for one in found for version in one.versions}
            assert in_versions == renamed(spec, last)


@each("spec", {spec.name: spec for spec in SEVERAL}, parts=5)
def test_one_field_of_many_is_renamed_in_the_versions_that_name_it_otherwise(
    spec: MessageSpec,
) -> None:
    first, last = spec.valid_versions.lowest, spec.valid_versions.highest
    for one in spec.fields:
        if one.tag is not None or first not in one.versions:
            continue

        def change(other: FieldSpec, one: FieldSpec = one) -> tuple[FieldSpec, ...]:
            if other is not one:
                return (other,)
            named = replace(one, name="Legacy", versions=Versions(first, first))
            rest = replace(one, versions=one.versions & Versions(first + 1, HIGHEST), fields=())
            return named, rest

        for before, after in (
            (Edition(spec), with_fields(spec, change)),
            (with_fields(spec, change), Edition(spec)),
        ):
            found = told(before, after)
            assert [(one.rule.id, one.versions) for one in found] == [("FIELD_RENAMED", (first,))]
    assert last > first


def test_a_name_that_the_version_has_elsewhere_is_no_new_name() -> None:
    # Both specs contain both names in this version, so the fields changed places.
    spec = next(one for one in SEVERAL if len(_same_kind(one)) > 1)
    first, second = _same_kind(spec)[:2]

    def swap(one: FieldSpec) -> tuple[FieldSpec, ...]:
        if one in (first, second):
            return (replace(one, name=second.name if one is first else first.name),)
        return (one,)

    found = told(Edition(spec), with_fields(spec, swap))
    assert {one.rule.category for one in found} >= {Breaks.WIRE}


def _same_kind(spec: MessageSpec) -> list[FieldSpec]:
    fields = [one for one in spec.fields if one.tag is None and spec.valid_versions <= one.versions]
    return [one for one in fields if one.type.name == "int32" and not one.type.is_array]
