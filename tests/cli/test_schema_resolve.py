"""`schema resolve` lists the fields of a version in wire order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from flexwire.codec import explain, message
from flexwire.schema.catalog import catalog
from tests.cli.test_messages import Run
from tests.each import each

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(capsys, monkeypatch)


NAMES = [name for name in catalog().names() if catalog().entry(name).versions]


@each("name", NAMES)
def test_fields_stand_in_the_order_of_the_bytes(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = Run(capsys, monkeypatch)("schema", "resolve", name, "-V", "latest", "--format", "json")
    told = json.loads(ran.out)
    kind = message(name)
    version = kind.entry.versions.highest
    assert (told["message"], told["version"]) == (name, version)
    listed = [
        one["field"].removesuffix("[]")
        for one in told["fields"]
        if "." not in one["field"] and one["presence"] == "inline"
    ]
    read = explain(kind, kind().encode(version), version).annotations
    # A message with default values contains every inline field and no tagged field.
    seen = dict.fromkeys(one.path.partition(".")[0].partition("[")[0] for one in read)
    assert listed == [one for one in seen if one != "_taggedFields"]
    assert told["flexible"] == ("_taggedFields" in seen)


def test_a_field_says_its_type_where_it_stands_and_its_default(run: Run) -> None:
    lines = run("schema", "resolve", "FetchRequest", "--version", "12").out.splitlines()
    assert lines[0] == "FetchRequest v12, flexible, request header 2"
    rows = {line.split()[0]: line.split()[1:] for line in lines[2:]}
    assert rows["maxBytes"] == ["INT32", "inline", "2147483647"]
    assert rows["clusterId"] == ["COMPACT_NULLABLE_STRING", "tag", "0", "null"]
    assert rows["topics[].partitions[]"][:3] == ["COMPACT_ARRAY", "of", "FetchPartition"]
    assert "replicaState" not in rows
    whole = run("schema", "resolve", "FetchRequest", "--version", "12", "--all").out
    assert any(
        line.split() == ["replicaState", "ReplicaState", "absent", "{}"]
        for line in whole.splitlines()
    )


def test_an_encoding_has_its_own_order_and_types(run: Run) -> None:
    ran = run("schema", "resolve", "FetchRequest", "-V", "12", "--encoding", "optional-buffers")
    rows = [line.split() for line in ran.out.splitlines()[2:]]
    # In the first draft, optional fields come first, and nothing is compact.
    assert rows[0][:4] == ["clusterId", "NULLABLE_STRING", "tag", "0"]
    assert not any("COMPACT" in " ".join(row) for row in rows)


@pytest.mark.parametrize(
    ("message", "version", "header"),
    [
        ("ApiVersionsResponse", "3", 0),
        ("ControlledShutdownRequest", "0", 0),
        ("ControlledShutdownRequest", "1", 1),
        ("MetadataResponse", "9", 1),
        ("RequestHeader", "2", None),
    ],
)
def test_the_header_before_a_version_is_shown(
    message: str, version: str, header: int | None, run: Run
) -> None:
    ran = run("schema", "resolve", message, "-V", version, "--format", "json")
    assert json.loads(ran.out)["headerVersion"] == header
    first = run("schema", "resolve", message, "-V", version).out.splitlines()[0]
    assert ("header" in first.partition(",")[2]) == (header is not None)


def test_a_header_that_a_spec_names_is_shown(run: Run, tmp_path: Path) -> None:
    spec = {
        "name": "PingRequest",
        "type": "request",
        "apiKey": 500,
        "validVersions": "0-1",
        "flexibleVersions": "1+",
        "headerVersions": {"0": "1", "1+": "3"},
        "fields": [],
    }
    (tmp_path / "PingRequest.json").write_text(json.dumps(spec), encoding="utf-8")
    told = run("schema", "resolve", "PingRequest", "-V", "1", "--specs", str(tmp_path)).out
    assert told.splitlines()[0] == "PingRequest v1, flexible, request header 3"
