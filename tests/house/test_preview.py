"""`make preview` shows what a source tree adds, and what flexwire would read incorrectly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.schema.trunk import write_trunk
from tools.preview import main

if TYPE_CHECKING:
    from pathlib import Path

PING = {
    "apiKey": 900,
    "type": "request",
    "name": "PingRequest",
    "validVersions": "0",
    "flexibleVersions": "0+",
    "headerVersions": {"0+": "9"},
    "fields": [{"name": "ReplySecret", "type": "string", "versions": "0+", "about": "a"}],
}


@pytest.fixture(scope="module")
def trunk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_trunk(tmp_path_factory.mktemp("preview"))


def run(source: Path) -> tuple[int, dict[str, list[str]]]:
    """Return the exit status, and the lines below each heading."""
    out = source.parent / "page.md"
    status = main([str(source), "--out", str(out)])
    blocks = out.read_text(encoding="utf-8").split("\n## ")[1:]
    parts = {block.split("\n")[0]: block.strip().split("\n")[2:] for block in blocks}
    return status, parts


@pytest.mark.long
@pytest.mark.slow
def test_specs_shaped_as_trunk_s_are_read_and_told(trunk: Path) -> None:
    """README states that Kafka 4.5 works on the day of its release."""
    status, parts = run(trunk)
    assert parts["What flexwire would misread"] == ["Nothing new."]
    assert status == 0
    assert parts["Messages"] == ["Nothing new."]
    assert "- OffsetDeleteRequest 1 is new" in parts["Versions"]
    assert "- RequestHeader 3 is new" in parts["Versions"]
    assert "- RequestHeader v3: added ClientInstanceId (uuid, tag 0, ignorable)" in parts["Fields"]
    assert "- OffsetDeleteRequest v1: Request header 1 → 3" in parts["Headers"]
    assert parts["Error codes"] == [f"Unknown: {trunk} has no common/protocol/Errors.java."]


@pytest.mark.long
@pytest.mark.slow
def test_what_would_be_misread_is_told(trunk: Path) -> None:
    messages = trunk / "clients"
    messages.joinpath("PingRequest.json").write_text(json.dumps(PING), encoding="utf-8")
    messages.joinpath("PongResponse.json").write_text('{"odd": 1}', encoding="utf-8")
    heartbeat = messages / "HeartbeatRequest.json"
    released = heartbeat.read_text(encoding="utf-8")
    changed = json.loads(released.replace('"int32"', '"int64"'))
    changed["headerVersions"] = {"0-3": "1", "4+": "3"}
    heartbeat.write_text(json.dumps(changed), encoding="utf-8")
    errors = trunk / "clients" / "common" / "protocol" / "Errors.java"
    errors.parent.mkdir(parents=True)
    errors.write_text('    NONE(0, null),\n    ODD_ERROR(999, "a",\n', encoding="utf-8")
    status, parts = run(trunk)
    assert status == 1
    assert "- new: PingRequest (request, api key 900), 0" in parts["Messages"]
    assert parts["Error codes"] == ["- 999 ODD_ERROR; flexwire has none"]
    assert [line for line in parts["Headers"] if "HeartbeatRequest v4" in line] == [
        "- HeartbeatRequest v4, which is released: Request header 2 → 3"
    ]
    told = "\n".join(parts["What flexwire would misread"])
    for line in (
        "PongResponse.json:1:2: unknown key 'odd'",
        "HeartbeatRequest v4 has other bytes than in the release",
        "error code 999 (ODD_ERROR) has no name in flexwire",
        "PingRequest v0: no spec has its header 9",
        "PingRequest.ReplySecret sounds like a secret",
    ):
        assert line in told, (line, told)


def test_a_source_without_specs_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 2
    assert "no specs here" in capsys.readouterr().err
