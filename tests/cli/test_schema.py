"""`schema list` and `schema import` work on the catalog and on imported releases."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from flexwire import load_specs
from flexwire.cli.app import app
from flexwire.cli.options import InputError
from flexwire.errors import UnknownMessageError
from flexwire.protocol.error_meanings import MEANINGS
from flexwire.schema.catalog import catalog
from flexwire.schema.sources import read_sources
from flexwire.schema.write import write_spec
from tests.searching import in_make_long


def test_list_shows_every_bundled_message() -> None:
    told = json.loads(CliRunner().invoke(app, ["schema", "list", "--format", "json"]).output)
    assert [row["message"] for row in told] == list(catalog().names())
    lines = CliRunner().invoke(app, ["schema", "list"]).output.splitlines()
    assert lines[-1] == f"{len(told)} messages"
    fetch = next(line.split() for line in lines if line.startswith("FetchRequest "))
    assert fetch[:6] == ["FetchRequest", "clients", "request", "1", "0-18", "12+"]


def test_list_narrows_by_name_module_and_release() -> None:
    arguments = ["schema", "list", "offsetcommitre", "--module", "clients", "--release", "2.4.1"]
    rows = json.loads(CliRunner().invoke(app, [*arguments, "--format", "json"]).output)
    assert [(row["message"], row["versions"]) for row in rows] == [
        ("OffsetCommitRequest", "0-8"),
        ("OffsetCommitResponse", "0-8"),
        ("TxnOffsetCommitRequest", "0-2"),
        ("TxnOffsetCommitResponse", "0-2"),
    ]


def test_an_unknown_release_is_an_error_that_names_the_known() -> None:
    with pytest.raises(UnknownMessageError, match=r"no release '9\.9' .* nearest is 4\.4\.0"):
        CliRunner().invoke(app, ["schema", "list", "--release", "9.9"], catch_exceptions=False)


def test_import_reports_what_it_read_and_wrote(tmp_path: Path) -> None:
    source = tmp_path / "specs" / "3.0.0" / "clients"
    source.mkdir(parents=True)
    spec = {
        "name": "PingRequest",
        "type": "request",
        "apiKey": 999,
        "validVersions": "0-1",
        "flexibleVersions": "1+",
        "fields": [{"name": "Text", "type": "string", "versions": "0+"}],
    }
    (source / "PingRequest.json").write_text(json.dumps(spec), encoding="utf-8")
    arguments = ["schema", "import", "--fresh", str(tmp_path / "specs")]
    arguments += ["--out", str(tmp_path / "out")]
    told = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert told.exit_code == 0
    assert "read     1 file of 3.0.0" in told.output
    assert "wrote    1 message, 2 (message, version) pairs" in told.output
    assert (tmp_path / "out" / "clients" / "PingRequest.json").exists()


def test_error_tags_writes_a_whole_set_and_says_what_it_did(tmp_path: Path) -> None:
    place = tmp_path / "specs"
    place.mkdir()
    spec = catalog().entry("OffsetDeleteResponse").spec(0)
    header = catalog().entry("ResponseHeader").spec(1)
    for one in (spec, header):
        (place / f"{one.name}.json").write_text(write_spec(one), encoding="utf-8")
    out = tmp_path / "out"
    arguments = ["schema", "error-tags", str(place), "--out", str(out)]
    told = CliRunner().invoke(app, arguments).output
    assert "wrote 2 specs" in told
    assert "    2 error codes are tagged fields in the new versions" in told
    assert "OffsetDeleteResponse: v1 becomes the first flexible version" in told
    assert "    1 neither a request nor a response" in told
    assert (out / "ResponseHeader.json").read_text() == write_spec(header)
    made = load_specs(out).message("OffsetDeleteResponse")
    assert made().encode(1) == bytes.fromhex("00000000 01 00")
    rows = json.loads(CliRunner().invoke(app, [*arguments, "--format", "json"]).output)
    assert [(row["message"], row["version"], row["errorCodes"]) for row in rows] == [
        ("OffsetDeleteResponse", 1, 2),
        ("ResponseHeader", None, 0),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("release", ["2.4.1", *in_make_long("4.4.0")])
def test_error_tags_takes_a_release_and_a_jar_alike(tmp_path: Path, release: str) -> None:
    jar = tmp_path / f"kafka-clients-{release}.jar"
    with zipfile.ZipFile(jar, "w") as made:
        for one in read_sources([f"release:{release}"]):
            made.writestr(f"common/message/{Path(one.path).name}", one.content)
    for source, out in ((f"release:{release}", "facts"), (str(jar), "jar")):
        arguments = ["schema", "error-tags", source, "--out", str(tmp_path / out)]
        assert CliRunner().invoke(app, arguments, catch_exceptions=False).exit_code == 0
    facts, of_jar = (
        {path.name: path.read_bytes() for path in (tmp_path / out).iterdir()}
        for out in ("facts", "jar")
    )
    assert facts == of_jar
    names = {name for name in catalog().names() if release in catalog().entry(name).releases}
    assert facts.keys() == {f"{name}.json" for name in names}
    breaking = ["schema", "breaking", str(tmp_path / "facts"), "--against", f"release:{release}"]
    ran = CliRunner().invoke(app, [*breaking, "--use", "WIRE", "--use", "SUPPORT"])
    assert (ran.exit_code, ran.output) == (0, f"{len(facts)} files, no findings\n")


def test_error_tags_does_not_write_over_what_it_reads(tmp_path: Path) -> None:
    path = tmp_path / "One.json"
    path.write_text("{}", encoding="utf-8")
    for source in (tmp_path, path):
        with pytest.raises(InputError, match="choose another directory"):
            CliRunner().invoke(
                app,
                ["schema", "error-tags", str(source), "--out", str(tmp_path)],
                catch_exceptions=False,
            )
    assert path.read_text(encoding="utf-8") == "{}"


def test_errors_lists_codes_by_name_and_number() -> None:
    def told(*arguments: str) -> str:
        return CliRunner().invoke(app, [*arguments]).output

    whole = told("schema", "errors").splitlines()
    assert whole[0].split() == ["-1", "UNKNOWN_SERVER_ERROR", "2.4"]
    assert whole[-1] == "138 error codes"
    assert len(whole) == 138 + 2
    former = told("schema", "errors", "not_leader_for").splitlines()
    assert former[0].split() == [
        *["6", "NOT_LEADER_OR_FOLLOWER", "2.4", "retriable"],
        *["NOT_LEADER_FOR_PARTITION", "before", "2.6"],
    ]
    # If specific codes are requested, their meanings are printed in lines of 80 columns.
    assert " ".join(line.strip() for line in former[1:-2]) == MEANINGS["NOT_LEADER_OR_FOLLOWER"]
    meant = [line for line in told("schema", "errors", "_").splitlines() if line[:6].isspace()]
    assert max(map(len, meant)) <= 80
    [one] = json.loads(told("schema", "errors", "100", "--format", "json"))
    assert one == {
        "code": 100,
        "name": "UNKNOWN_TOPIC_ID",
        "since": "2.8",
        "isRetriable": True,
        "formerName": None,
        "renamed": None,
        "meaning": MEANINGS["UNKNOWN_TOPIC_ID"],
    }
    # An unknown name causes an error that suggests the closest known name
    # (tests/cli/test_names.py).
    assert told("schema", "errors", "nothing") == ""
