"""`schema cost` counts the bytes of message versions."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.cli.options import InputError
from flexwire.errors import CaptureError, SpecError
from tests.spark.traffic import Traffic, made, request, response

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

ENCODINGS = ("--encoding", "kafka", "--against-encoding", "fixed")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    directory = tmp_path / "capture"
    directory.mkdir()
    traffic = Traffic(directory)
    connection = traffic.connect()
    for number, code in enumerate((0, 0, 25)):
        traffic.send(connection, "request", request(made("HeartbeatRequest"), 4, number))
        answer = made("HeartbeatResponse", error_code=code)
        traffic.send(connection, "response", response(answer, 4, number))
    traffic.send_raw(connection, "request", b"\0\0\0\x50cut off")
    traffic.close()
    return directory


def vectors(directory: Path, *messages: tuple[str, int, Any]) -> Path:
    path = directory / "some.jsonl"
    lines = [
        json.dumps({"message": name, "version": version, "hex": one.encode(version).hex()})
        for name, version, one in messages
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def run(*arguments: object, columns: int = 100) -> Result:
    command = ["schema", "cost", *map(str, arguments)]
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(app, command, catch_exceptions=False)


def test_a_capture_is_measured_with_headers_shares_and_what_is_left_out(capture: Path) -> None:
    told = json.loads(run(capture, "--error-tags", "--format", "json").output)
    assert told["question"] == {
        "old": "the bundled specs",
        "new": "the bundled specs with errors tagged",
        "at": "sent",
    }
    response_row, request_row = told["messages"]
    assert (response_row["message"], response_row["newVersion"]) == ("HeartbeatResponse", 5)
    # The throttle time takes 4 bytes, the error code 2, the tagged-field count 1, and the header 5.
    assert response_row["body"]["old"] == {"total": 21, "min": 7, "median": 7, "max": 7}
    assert response_row["body"]["new"] == {"total": 19, "min": 5, "median": 5, "max": 9}
    assert response_row["header"]["new"]["total"] == 15
    assert response_row["saved"] == {"total": 2, "min": -2, "median": 2, "max": 2}
    # A message also counts if the field takes up no bytes in it.
    code = next(one for one in response_row["fields"] if one["path"] == "errorCode")
    assert code["new"] == {"total": 4, "min": 0, "median": 0, "max": 4}
    (share,) = response_row["taggedNow"]
    assert share == {
        "path": "errorCode", "tag": 0, "values": 3, "set": 1, "share": 1 / 3,
        "breakEvenShare": 0.5, "old": 6, "new": 4,
    }  # fmt: skip
    assert request_row["saved"]["total"] == 0
    assert told["total"]["messages"] == 6
    (left,) = told["uncompared"]
    assert (left["what"], left["times"]) == ("frame", 1)


def test_an_api_is_its_requests_and_responses_of_all_versions(tmp_path: Path) -> None:
    answers = [("FetchResponse", one, made("FetchResponse")) for one in (15, 16)]
    asked = ("FetchRequest", 16, made("FetchRequest"))
    header = ("RequestHeader", 2, made("RequestHeader"))
    path = vectors(tmp_path, *answers, asked, header)
    told = json.loads(run("--vectors", path, *ENCODINGS, "--format", "json").output)
    (api,) = told["apis"]
    mine = [one for one in told["messages"] if one["message"] != "RequestHeader"]
    assert (api["api"], api["messages"], len(mine)) == ("Fetch", 3, 3)
    for side in ("old", "new"):
        assert api[side]["total"] == sum(one["whole"][side]["total"] for one in mine)
        assert api[side]["min"] == min(one["whole"][side]["min"] for one in mine)
        assert api[side]["max"] == max(one["whole"][side]["max"] for one in mine)
    assert api["saved"]["total"] == sum(one["saved"]["total"] for one in mine)
    assert api["saved"]["median"] == sorted(one["saved"]["median"] for one in mine)[1]
    # If every API has only one line, the text does not repeat that line.
    assert "by API" in run("--vectors", path, *ENCODINGS).output
    alone = vectors(tmp_path, asked)
    assert "by API" not in run("--vectors", alone, *ENCODINGS).output


def test_fields_of_json_and_csv_add_up(capture: Path) -> None:
    told = json.loads(run(capture, *ENCODINGS, "--format", "json").output)
    lines = list(csv.DictReader(io.StringIO(run(capture, *ENCODINGS, "--format", "csv").output)))
    for row in told["messages"]:
        mine = [one for one in lines if one["message"] == row["message"]]
        for side in ("old", "new"):
            parts = {
                part: sum(int(one[f"{side}_total"]) for one in mine if one["part"] == part)
                for part in ("whole", "header", "body", "field")
            }
            assert parts["field"] == parts["body"] == row["body"][side]["total"]
            assert parts["whole"] == parts["header"] + parts["body"]
            assert sum(one[side]["total"] for one in row["fields"]) == parts["body"]
        assert all(
            int(one["saved"]) == int(one["old_total"]) - int(one["new_total"]) for one in mine
        )


def test_the_text_shows_what_saves_most_first(capture: Path) -> None:
    told = run(capture, "--error-tags").output
    assert "HeartbeatResponse  4→5             3   36   34      2  5.6     -2       2\n" in told
    assert "\nby API\n" in told
    # Three responses of 12 bytes with their headers, and three requests of 24.
    assert "\nHeartbeat         6  108  106      2  1.9     -2       0\n" in told
    assert "\nfields that change\n" in told
    assert "HeartbeatResponse errorCode    6    4      2  33.3\n" in told
    assert "every ErrorCode                   3    1  33.3         50.0    6    4      2\n" in told
    assert "\nnot compared: 1 (11 bytes)\n" in told
    assert "       1  frame: " in told


def test_a_narrow_terminal_cuts_names_in_the_middle_and_no_line_is_wider(
    capture: Path, tmp_path: Path
) -> None:
    name = "IncrementalAlterConfigsResponse"
    path = vectors(tmp_path, (name, 1, made(name, responses=[{}])))
    told = run(capture, "--vectors", path, *ENCODINGS, columns=80).output
    assert max(map(len, told.splitlines())) <= 80
    assert "Incremental" in told
    wide = run(capture, "--vectors", path, *ENCODINGS, columns=200).output
    assert f"{name} responses[].resourceType" not in wide
    assert f"{name} responses[].errorMessage" in wide


def test_long_tables_are_cut_off_unless_all_is_asked_for(tmp_path: Path) -> None:
    versions = [("MetadataResponse", version, made("MetadataResponse")) for version in range(9, 14)]
    fetch = [("FetchResponse", one, made("FetchResponse")) for one in range(4, 18)]
    path = vectors(tmp_path, *versions, *fetch, fetch[0])
    short = run("--vectors", path, *ENCODINGS).output
    assert "… and 4 more; --all shows them\n" in short
    whole = run("--vectors", path, *ENCODINGS, "--all").output
    assert "…" not in whole
    assert whole.count("\nFetchResponse  ") == 14
    # The total includes rows that are not shown.
    (total,) = {line for text in (short, whole) for line in text.splitlines() if "total " in line}
    assert total.split()[1] == "20"


def test_specs_are_compared_with_specs(capture: Path, tmp_path: Path) -> None:
    spec = {
        "name": "HeartbeatResponse", "type": "response", "apiKey": 12, "validVersions": "4-5",
        "flexibleVersions": "4+", "fields": [
            {"name": "ThrottleTimeMs", "type": "int32", "versions": "4"},
            {"name": "ErrorCode", "type": "int16", "versions": "4+"}],
    }  # fmt: skip
    (tmp_path / "HeartbeatResponse.json").write_text(json.dumps(spec), encoding="utf-8")
    command = (capture, "--specs", tmp_path / "HeartbeatResponse.json")
    told = json.loads(run(*command, "--against", "release:4.4.0", "--format", "json").output)
    (row,) = told["messages"]
    # Messages in the version that used to be the newest are now in the newest version.
    assert (row["oldVersion"], row["newVersion"], row["saved"]["total"]) == (4, 5, 12)
    assert row["dropped"] == {}
    assert [one["reason"] for one in told["uncompared"] if one["what"] == "HeartbeatRequest 4"] == [
        "the new specs do not contain this message"
    ]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--error-tags",), "give a capture"),
        ((".",), "give one change"),
        ((".", "--error-tags", "--encoding", "fixed"), "give one change"),
        ((".", "--error-tags", "--specs", "release:3.9.0"), "give one change"),
        ((".", "--encoding", "other"), "Invalid value"),
        ((".", "--error-tags", "--at", "never"), "Invalid value"),
        (("--vectors", "nowhere", "--error-tags"), "does not exist"),
    ],
)
def test_a_question_that_is_none_is_a_usage_error(arguments: tuple[str, ...], reason: str) -> None:
    told = run(*arguments)
    assert told.exit_code == 2
    assert reason in told.output


def test_what_cannot_be_read_fails(capture: Path, tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no such file"):
        run(tmp_path / "nowhere", "--error-tags")
    with pytest.raises(SpecError, match="no release"):
        run(capture, "--specs", "release:0.0")


def test_nothing_compared_is_a_failure_that_shows_why(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    path.write_text('{"message": "Ping", "version": 0, "hex": ""}', encoding="utf-8")
    command = ["schema", "cost", "--vectors", str(path), "--error-tags"]
    told = CliRunner().invoke(app, command)
    assert isinstance(told.exception, InputError)
    assert "no message was compared" in told.output
    assert "Ping 0: the old specs do not contain this message" in told.output


def test_a_metadata_record_has_no_header(tmp_path: Path) -> None:
    path = vectors(tmp_path, ("ConfigRecord", 0, made("ConfigRecord", name="a", value="b")))
    told = json.loads(run("--vectors", path, *ENCODINGS, "--format", "json").output)
    (row,) = told["messages"]
    assert row["header"]["old"]["total"] == 0
    assert row["body"]["old"]["total"] - row["body"]["new"]["total"] == 3 - 1


def test_who_speaks_the_newest_versions_is_told(tmp_path: Path) -> None:
    newest = ("HeartbeatRequest", 4, made("HeartbeatRequest"))
    older = ("HeartbeatRequest", 3, made("HeartbeatRequest"))
    opening = ("ApiVersionsRequest", 4, made("ApiVersionsRequest"))
    answer = ("HeartbeatResponse", 4, made("HeartbeatResponse"))
    file = vectors(tmp_path, newest, older, older, opening, answer)
    told = json.loads(run("--vectors", file, *ENCODINGS, "--format", "json").output)
    assert told["newest"] == {"requests": 3, "atNewest": 1}
    shown = " ".join(run("--vectors", file, *ENCODINGS).output.split())
    assert "1 of 3 requests (33.3 %) use the newest version" in shown


def test_without_requests_nothing_is_said_of_the_newest_versions(tmp_path: Path) -> None:
    file = vectors(tmp_path, ("HeartbeatResponse", 4, made("HeartbeatResponse")))
    assert "newest version" not in run("--vectors", file, *ENCODINGS).output
