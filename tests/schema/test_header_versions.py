"""Each version of a request or response has one header version, and all sources agree on it."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.errors import SpecError
from flexwire.schema.catalog import Catalog, bundled_catalog
from flexwire.schema.error_tags import tag_errors
from flexwire.schema.header_versions import (
    HEADER_NAMES,
    READ_BY_ALL,
    derived,
    header_versions,
    spec_header_versions,
)
from flexwire.schema.importer import import_specs
from flexwire.schema.parse import parse_spec
from flexwire.schema.spec import HeaderVersions, MessageType, narrowed
from flexwire.schema.text import SpecText
from flexwire.schema.write import write_spec
from flexwire.versions import Versions
from tests.schema.trunk import RELEASE, trunk_catalog, trunk_texts

if TYPE_CHECKING:
    from pathlib import Path

REQUEST, RESPONSE = MessageType.REQUEST, MessageType.RESPONSE


def spec(headers: object, **others: object) -> str:
    known: dict[str, object] = {
        "type": "request",
        "apiKey": 90,
        "name": "FooRequest",
        "validVersions": "0-3",
        "flexibleVersions": "2+",
        "fields": [],
    }
    return json.dumps(known | others | {"headerVersions": headers})


@pytest.fixture(scope="module")
def trunk(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return Catalog(trunk_catalog(tmp_path_factory.mktemp("trunk")))


@pytest.mark.parametrize("headers", [{}, {"0": "x"}, {"3+": "1"}, [], "0+", None])
def test_a_removed_message_has_none_whatever_its_spec_says(headers: object) -> None:
    """The generator ignores the key, as it ignores the flexible versions."""
    assert parse_spec(spec(headers, validVersions="none")).header_versions is None


def test_the_order_of_ranges_and_numbers_for_texts_do_not_matter() -> None:
    read = parse_spec(spec({" 2+ ": 2, "0-1": " 1 "}))
    assert read.header_versions == HeaderVersions.parse({"0-1": "1", "2+": "2"})
    assert parse_spec(write_spec(read)) == read
    assert '"headerVersions": {"0-1": "1", "2+": "2"}' in write_spec(read)


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({}, "an empty object"),
        ([], "an array"),
        ("0+", "got a string"),
        ({"": "1"}, "'' is not a range of versions"),
        ({"none": "1"}, "'none' is not a range of versions"),
        ({"5-3": "1"}, "'5-3' is not a range of versions"),
        ({"-1": "1"}, "'-1' is not a range of versions"),
        ({"all": "1"}, "'all' is not a range of versions"),
        ({"0+": ""}, "a header version from 0 to 32767, got ''"),
        ({"0+": None}, "a header version from 0 to 32767"),
        ({"0+": "-1"}, "got '-1'"),
        ({"0+": "1.0"}, "got '1.0'"),
        ({"0+": "32768"}, "got '32768'"),
        ({"0+": "99999999999999999999"}, "a header version from 0 to 32767"),
        ({"0+": ["1"]}, "an array"),
    ],
)
def test_what_is_not_a_map_of_ranges_to_numbers_is_refused(headers: object, reason: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_spec(spec(headers))
    assert reason in str(refused.value)


def test_the_draft_has_no_such_key() -> None:
    draft = spec({"0+": "1"}).replace("flexibleVersions", "versionsWithOptional")
    with pytest.raises(SpecError, match="unknown key 'headerVersions'"):
        parse_spec(draft, mode="draft")


def test_a_spec_that_says_nothing_has_the_headers_of_its_flexible_versions() -> None:
    flexible = Versions.parse("2+")
    assert [header_versions(REQUEST, 90, flexible).of(n) for n in range(4)] == [1, 1, 2, 2]
    assert [header_versions(RESPONSE, 90, flexible).of(n) for n in range(4)] == [0, 0, 1, 1]
    assert str(header_versions(REQUEST, 90, Versions.NONE)) == "1 in 0+"
    assert str(derived(RESPONSE, Versions.parse("1-2"))) == "0 in 0, 1 in 1-2, 0 in 3+"


def test_a_spec_that_names_its_headers_is_believed() -> None:
    written = HeaderVersions.parse({"0": "1", "1+": "3"})
    assert header_versions(REQUEST, 47, Versions.parse("1+"), written) == written
    # Up to 4.4 this request's headers are an exception; a spec that names its header versions
    # decides.
    assert header_versions(REQUEST, 7, Versions.NONE, written) == written


def test_the_first_response_of_a_connection_has_header_0_whatever_its_spec_says() -> None:
    written = HeaderVersions.parse({"0+": "1"})
    assert str(header_versions(RESPONSE, 18, Versions.parse("3+"), written)) == "0 in 0+"
    assert str(header_versions(REQUEST, 18, Versions.parse("3+"))) == "1 in 0-2, 2 in 3+"


def test_every_version_has_a_header_where_ranges_leave_some_out() -> None:
    headers = HeaderVersions.parse({"2-3": "1", "6+": "2"})
    assert [headers.of(version) for version in (-1, 0, 2, 4, 5, 6, 99)] == [1, 1, 1, 1, 1, 2, 2]


def test_commands_take_specs_whose_ranges_leave_out_versions(tmp_path: Path) -> None:
    tmp_path.joinpath("FooRequest.json").write_text(spec({"1": "1", "2+": "2"}), encoding="utf-8")
    for command, status, text in [
        ("lint {0}", 100, "HEADER_VERSIONS_INCOMPLETE"),
        ("breaking {0} --against {0}", 0, "no findings"),
        ("resolve FooRequest -V 0 --specs {0}", 0, "header"),
        ("import --fresh --release 9.9 --out {0}/made {0}", 0, ""),
    ]:
        words = ["schema", *command.format(tmp_path).split()]
        result = CliRunner().invoke(app, words, catch_exceptions=False)
        assert (result.exit_code, text in result.output) == (status, True), result.output


def test_a_spec_of_fewer_versions_has_no_range_above_them() -> None:
    read = parse_spec(spec({"0": "1", "1-2": "2", "3+": "3"}))
    few = narrowed(read, Versions(0, 1))
    assert few.header_versions == HeaderVersions.parse({"0": "1", "1+": "2"})
    assert narrowed(read, Versions.NONE).header_versions == HeaderVersions.parse({"0+": "1"})


def test_every_released_version_has_the_header_that_its_flexibility_gives() -> None:
    catalog = bundled_catalog()
    excepted = set()
    for entry in map(catalog.entry, catalog.names()):
        if not entry.type.is_api:
            continue
        for version in entry.versions:
            header = entry.header_versions.of(version)
            assert header == spec_header_versions(entry.spec(version)).of(version)
            assert header in catalog.entry(HEADER_NAMES[entry.type]).versions
            if header != int(entry.type is REQUEST) + (version in entry.flexible_versions):
                excepted.add((entry.name, version))
    assert {name for name, _ in excepted} == {"ApiVersionsResponse", "ControlledShutdownRequest"}
    assert [one for one in excepted if one[0].startswith("Controlled")] == [
        ("ControlledShutdownRequest", 0)
    ]


def test_specs_shaped_as_trunk_s_import_beside_all_releases(trunk: Catalog) -> None:
    assert RELEASE in trunk.releases
    bundled = bundled_catalog()
    for name in bundled.names():
        if bundled.entry(name).type.is_api:
            for version in bundled.entry(name).versions:
                headers = [one.entry(name).header_versions.of(version) for one in (bundled, trunk)]
                assert headers[0] == headers[1], name
    assert str(trunk.entry("OffsetDeleteRequest").header_versions) == "1 in 0, 3 in 1+"
    assert str(trunk.entry("PushTelemetryRequest").header_versions) == "2 in 0, 3 in 1+"
    assert str(trunk.entry("OffsetDeleteResponse").header_versions) == "0 in 0, 1 in 1+"
    assert 3 in trunk.entry("RequestHeader").versions


def test_only_headers_that_do_not_follow_stand_in_the_index(trunk: Catalog) -> None:
    index: dict[str, Any] = json.loads(trunk.read("index.json"))
    named = {name for name, facts in index["messages"].items() if "headerVersions" in facts}
    assert named == {
        "OffsetDeleteRequest",
        "GetTelemetrySubscriptionsRequest",
        "PushTelemetryRequest",
    }


def test_a_header_that_changes_keeps_the_spec_of_both_releases(tmp_path: Path) -> None:
    for release, header in (("4.8.0", "2"), ("4.9.0", "3")):
        path = tmp_path / release / "clients" / "FooRequest.json"
        path.parent.mkdir(parents=True)
        path.write_text(spec({"0-1": "1", "2+": header}), encoding="utf-8")
    import_specs([tmp_path / "4.8.0", tmp_path / "4.9.0"], tmp_path / "out")
    entry = Catalog(tmp_path / "out").entry("FooRequest")
    old, new = (entry.spec(2, release) for release in ("4.8.0", "4.9.0"))
    assert [spec_header_versions(one).of(2) for one in (old, new)] == [2, 3]
    assert spec_header_versions(entry.spec(1, "4.8.0")).of(1) == 1
    assert entry.header_versions.of(2) == 3


def test_tagged_error_codes_raise_the_header_of_the_version_that_becomes_flexible() -> None:
    response = {
        "type": "response",
        "apiKey": 90,
        "name": "FooResponse",
        "validVersions": "0-1",
        "flexibleVersions": "none",
        "headerVersions": {"0+": "0"},
        "fields": [{"name": "ErrorCode", "type": "int16", "versions": "0+"}],
    }
    request = json.loads(spec({"0+": "1"}, validVersions="0-1", flexibleVersions="none"))
    texts = [SpecText(json.dumps(one), f"{one['name']}.json") for one in (request, response)]
    done = {one.spec.name: parse_spec(one.text) for one in tag_errors(texts)}
    assert str(done["FooResponse"].header_versions) == "0 in 0-1, 1 in 2+"
    assert str(done["FooRequest"].header_versions) == "1 in 0-1, 2 in 2+"


def test_the_headers_that_every_broker_reads_have_no_tagged_fields() -> None:
    for name, version in READ_BY_ALL.items():
        entry = bundled_catalog().entry(name)
        assert version in entry.versions
        assert version not in entry.flexible_versions


def test_derived_ranges_cover_every_version_once() -> None:
    for text in ("none", "0+", "1+", "9+", "0-3", "2-5"):
        headers = derived(REQUEST, Versions.parse(text))
        assert headers.ranges[0][0].lowest == 0
        assert headers.ranges[-1][0].open_ended
        assert all(a.highest + 1 == b.lowest for (a, _), (b, _) in pairwise(headers))


def test_every_trunk_spec_reads_in_strict_mode() -> None:
    assert len(trunk_texts()) > 200
    for text in trunk_texts().values():
        assert parse_spec(text, mode="strict")
