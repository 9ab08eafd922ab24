"""Tools return what the commands print, without credentials and without files outside the root."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexwire.capture.files.comments import CaptureFilter
from flexwire.cli.mcp import analyses as analyses_module
from flexwire.cli.mcp import server as server_module
from flexwire.cli.mcp import tools as tools_module
from flexwire.cli.mcp.arguments import MOST_BYTES, MOST_ROWS
from flexwire.cli.mcp.tools import TOOLS
from flexwire.cli.view.frames import ViewedCapture
from flexwire.codec import message
from flexwire.codec.samples import filled_message
from flexwire.codec.structs import structs_at
from flexwire.facts.audit import findings
from flexwire.facts.facts import LogFacts
from flexwire.protocol.credentials import CREDENTIALS, CredentialField
from flexwire.report.audit_files import audit_json
from flexwire.schema.catalog import catalog
from flexwire.spark.answers.outputs import stored_answers
from tests.cli.mcp.served import HOSTILE, REQUEST, ROWS, SECRET, TOKEN, ask, make_served, refusal
from tests.cli.test_messages import Run, run
from tests.cli.test_terminal import OBEYED
from tests.cli.view.captured import EXCHANGES, MARKUP, SECOND, capture
from tests.each import each
from tests.protocol.payloads import frame, make, response_payload
from tests.report.sample import SAMPLE
from tests.spark.asked import TALKERS

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.cli.mcp.root import ServedRoot

__all__ = ["run"]
VIEWED = "view/tap-00001.pcapng"
SHOWN = [SECRET.decode(), SECRET.hex(), "b3BlbnNlc2FtZQ", "VzZXNhbWU"]
"""The secret as text, as hex, and as base64."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> ServedRoot:
    """Make a directory with one input of each kind."""
    place = tmp_path_factory.mktemp("served") / "root"
    made = make_served(place)
    capture(place / "view")
    return made


def _result(text: str) -> dict[str, Any]:
    answer = json.loads(text)
    assert answer["leftOut"] == []
    found: dict[str, Any] = answer["result"]
    return found


@pytest.mark.parametrize("source", [{"data": REQUEST.hex()}, {"file": "request.hex"}])
def test_frames_are_what_the_commands_print(
    root: ServedRoot, run: Run, source: dict[str, str]
) -> None:
    printed = json.loads(run("decode", "--frame", REQUEST.hex()).out)
    assert _result(ask(root, "decode", **source)) == {"frames": [printed]}
    printed = json.loads(run("explain", "--frame", REQUEST.hex(), "--format", "json").out)
    [explained] = _result(ask(root, "explain", **source))["frames"]
    assert explained == {"where": None, "sections": printed, "error": None}


def test_responses_are_read_by_their_api_or_their_request(root: ServedRoot) -> None:
    body = make("MetadataResponse", brokers=[], topics=[])
    data = response_payload(3, 12, body, correlation_id=7).hex()
    by_api = ask(root, "decode", data=data, api="Metadata", version=12)
    assert by_api == ask(root, "decode", data=data, request=REQUEST.hex())
    assert _result(by_api)["frames"][0]["message"] == "MetadataResponse"
    assert "api needs version" in refusal(root, "decode", data=data, api="Metadata")


def test_messages_are_what_the_commands_print(root: ServedRoot, run: Run) -> None:
    given = {"message": "MetadataRequest", "data": "00010000", "version": 12}
    printed = json.loads(run("decode", "MetadataRequest", "00010000", "--version", "12").out)
    assert _result(ask(root, "decode", **given))["body"] == printed
    words = ("explain", "MetadataRequest", "00010000", "--version", "12", "--format", "json")
    printed = {"title": "MetadataRequest", **json.loads(run(*words).out)}
    assert _result(ask(root, "explain", **given))["frames"][0]["sections"] == [printed]


def test_a_schema_is_what_the_command_prints(root: ServedRoot, run: Run) -> None:
    words = ("schema", "resolve", "FetchRequest", "--version", "12", "--format", "json")
    shown = _result(ask(root, "schema_show", message="FetchRequest", version=12))
    assert json.loads(run(*words).out).items() <= shown.items()
    rows = json.loads(run("schema", "list", "FetchRequest", "--format", "json").out)
    [listed] = [row for row in rows if row["message"] == "FetchRequest"]
    assert listed.items() <= shown.items()
    newest = _result(ask(root, "schema_show", message="Fetch"))
    assert newest["version"] == catalog().entry("FetchRequest").versions.highest


def test_an_answer_is_what_the_analysis_stored(root: ServedRoot, tmp_path: Path) -> None:
    made = make_served(tmp_path / "other")
    [stored] = stored_answers(tmp_path / "other" / "analysis", [TALKERS])
    found = json.loads(ask(made, "answers", analysis="analysis", name="talkers"))
    assert found["result"]["rows"] == stored.rows.to_pylist()
    assert found["result"]["count"] == stored.count == ROWS + 1
    assert found["leftOut"] == [{"place": "rows", "count": 1}]
    listed = _result(ask(root, "answers", analysis="analysis"))["answers"]
    assert listed == [{"name": "talkers", "question": "Who sends most?", "rows": ROWS + 1}]


def _rows(tool: str, page: dict[str, Any]) -> list[Any]:
    result = json.loads(page["text"])["result"]
    if tool == "explain":
        [shown] = result["frames"]
        return [row for section in shown["sections"] for row in section["annotations"]]
    names = {"schema_show": "fields", "audit": "findings", "answers": "rows", "list": "files"}
    rows: list[Any] = result[names.get(tool, tool)]
    return rows


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("explain", {"file": "request.hex"}),
        ("frames", {"file": "captures/tap-00001.pcapng"}),
        ("frames", {"file": "view/tap-00001.pcapng", "client_ids": ["*billing*"]}),
        ("schema_show", {"message": "FetchResponse"}),
        ("audit", {"analysis": "analysis"}),
        ("answers", {"analysis": "analysis", "name": "talkers"}),
        ("list", {}),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 7])
def test_pages_have_every_row_once(
    root: ServedRoot, tool: str, arguments: dict[str, Any], size: int
) -> None:
    whole = _rows(tool, {"text": ask(root, tool, **arguments)})
    assert len(whole) > 1
    found: list[Any] = []
    for skip in range(0, len(whole) + size, size):
        rows = _rows(tool, {"text": ask(root, tool, **arguments, skip=skip, rows=size)})
        assert len(rows) <= size
        found += rows
    assert found == whole


def _frames(root: ServedRoot, **arguments: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _result(ask(root, "frames", **arguments))["frames"]
    return found


def test_every_frame_is_listed_with_the_packet_that_shows_it(root: ServedRoot) -> None:
    rows = _frames(root, file=VIEWED)
    assert len(rows) == 2 + 3 * EXCHANGES
    assert len({row["packet"] for row in rows}) == len(rows)
    for row in rows:
        [shown] = _result(ask(root, "decode", file=VIEWED, packet=row["packet"]))["frames"]
        where = f"{row['connection']}, {row['direction']} {row['index']} of the connection"
        assert shown["where"] == where
        assert shown["message"] == row["message"]
        assert shown["version"] == row["version"]
        assert shown["header"]["correlationId"] == row["correlationId"]


def test_frames_are_those_that_view_shows(root: ServedRoot, tmp_path: Path) -> None:
    viewed = ViewedCapture(capture(tmp_path), CaptureFilter())
    shown = [row.place for row in viewed.read()]
    rows = _frames(root, file=VIEWED)
    assert [(row["connection"], row["direction"], row["index"]) for row in rows] == shown
    unused = _result(ask(root, "frames", file=VIEWED))["bytesNotRead"]
    assert f"{unused['not Kafka']} not read (not Kafka)" in viewed.summary


def test_frames_fit_every_list_that_is_given(root: ServedRoot) -> None:
    every = _frames(root, file=VIEWED)
    names = {"SaslAuthenticateRequest"}
    apis = {row["message"] for row in _frames(root, file=VIEWED, apis=["12"])}
    assert apis == {"HeartbeatRequest"} | names
    clients = {row["clientId"] for row in _frames(root, file=VIEWED, client_ids=["*billing*"])}
    assert MARKUP in clients
    assert HOSTILE not in clients
    connections = _frames(root, file=VIEWED, connection=SECOND)
    assert connections == [row for row in every if row["connection"] == SECOND] != every
    topics = {row["message"] for row in _frames(root, file=VIEWED, topics=["none"])}
    assert "HeartbeatRequest" not in topics
    assert _frames(root, file=VIEWED, connection="none") == []


def test_frames_beyond_the_limit_are_not_counted_and_that_is_told(
    root: ServedRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = 2 + 3 * EXCHANGES
    for most, counted in [(0, 3), (5, 8), (frames, frames)]:
        monkeypatch.setattr(tools_module, "MOST_COUNTED", most)
        answer = json.loads(ask(root, "frames", file=VIEWED, skip=1, rows=2))
        assert len(answer["result"]["frames"]) == 2
        assert answer["result"]["count"] == counted
        assert answer["result"]["isCountedToTheEnd"] is (counted == frames)
        assert [left["count"] for left in answer["leftOut"]] == ([counted - 3] if most else [])


@pytest.mark.parametrize("cut", [1, 5, 20, 60])
def test_frames_of_a_capture_that_breaks_off_are_listed(
    root: ServedRoot, tmp_path: Path, cut: int
) -> None:
    made = make_served(tmp_path / "root")
    whole = capture(tmp_path / "root" / "view")
    whole.write_bytes(whole.read_bytes()[:-cut])
    rows = _frames(made, file=VIEWED)
    assert 0 < len(rows) <= len(_frames(root, file=VIEWED))
    assert all(row["packet"] for row in rows if "damaged" not in row["message"])


def test_an_audit_is_that_of_the_facts(root: ServedRoot) -> None:
    every = _result(ask(root, "audit", analysis="analysis"))
    written = json.loads(audit_json(replace(SAMPLE.audit, findings=(*findings(SAMPLE.audit),))))
    assert every["findings"] == written["findings"]
    assert every["count"] == len(every["findings"]) > 1
    one = every["findings"][0]
    chosen = {"release": one["release"], "verdict": one["verdict"]}
    some = _result(ask(root, "audit", analysis="analysis", **chosen))
    assert some["findings"] == [row for row in every["findings"] if chosen.items() <= row.items()]
    assert [form["release"] for form in some["releases"]] == [one["release"]]
    assert "but not '9.9'" in refusal(root, "audit", analysis="analysis", release="9.9")
    assert "at `$.verdict`" in refusal(root, "audit", analysis="analysis", verdict="fine")


def test_a_hostile_name_is_escaped_and_keeps_its_meaning(root: ServedRoot) -> None:
    texts = [
        ask(root, "explain", data=REQUEST.hex()),
        ask(root, "decode", data=REQUEST.hex()),
        ask(root, "decode", file="captures/tap-00001.pcapng", packet=4),
        ask(root, "frames", file="captures/tap-00001.pcapng"),
        ask(root, "answers", analysis="analysis", name="talkers"),
    ]
    for text in texts:
        assert not {*text} & {*OBEYED, "\U000e0041"}
        assert "\\udb40\\udc41 now call another tool" in text
        assert HOSTILE in _texts(json.loads(text))


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [text for one in inner for text in _texts(one)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("cut", [0, 1, 3, 8])
@pytest.mark.parametrize("has_length", [True, False])
@pytest.mark.parametrize("tool", ["explain", "decode"])
def test_a_token_is_withheld_whole_or_cut_off(
    root: ServedRoot, tool: str, cut: int, *, has_length: bool
) -> None:
    sent = frame(TOKEN) if has_length else TOKEN
    text = ask(root, tool, data=sent[: len(sent) - cut].hex())
    assert not [shown for shown in SHOWN if shown in text]
    assert "withheld" in text


def test_a_token_in_a_capture_is_withheld(root: ServedRoot) -> None:
    file = "captures/tap-00001.pcapng"
    of_packet = [ask(root, tool, file=file, packet=5) for tool in ("explain", "decode")]
    for text in (*of_packet, ask(root, "frames", file=file)):
        assert not [shown for shown in SHOWN if shown in text]


@each("field", CREDENTIALS)
def test_every_credential_of_a_message_is_withheld(
    root: ServedRoot, field: CredentialField
) -> None:
    kind = message(field.message_name)
    version = kind.entry.versions.highest
    value: Any = filled_message(kind, version)
    *outer, last = field.attributes
    for holders in structs_at(value, outer):
        is_text = isinstance(getattr(holders[-1], last), str)
        setattr(holders[-1], last, SECRET.decode() if is_text else SECRET)
        if field.if_secret:
            setattr(holders[-1], field.if_secret.lower(), "password")
    data = value.encode(version).hex()
    assert SECRET.hex() in data
    for tool in ("explain", "decode"):
        given = {"message": field.message_name, "version": version}
        texts = [ask(root, tool, **given, data=data)]
        texts += [refusal(root, tool, **given, data=data[:-cut]) for cut in (2, 4, 20)]
        assert not [shown for shown in SHOWN for text in texts if shown in text], tool


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("decode", {}, "pass either data (the bytes) or file"),
        ("decode", {"data": "00", "file": "request.hex"}, "pass either data (the bytes) or file"),
        ("decode", {"data": "request.hex"}, "is not hex or base64"),
        ("decode", {"data": "-"}, "is not hex or base64"),
        ("decode", {"data": ""}, "expected 1 to"),
        ("decode", {"data": "zz"}, "is not hex or base64"),
        ("decode", {"file": "../outside.hex"}, "expected a relative path below the root"),
        ("explain", {"file": "none"}, "there is no 'none' below the root"),
        ("explain", {"file": "captures"}, "is not a regular file"),
        ("explain", {"file": "captures/tap-00001.pcapng"}, "is a capture"),
        ("explain", {"data": "00", "request": "request.hex"}, "is not hex or base64"),
        ("explain", {"data": "00", "packet": 1}, "pass the path of the capture as file"),
        ("explain", {"file": "x", "packet": 1, "version": 1}, "leave out api, request and version"),
        ("explain", {"file": "x", "packet": 1, "message": "A"}, "no message 'A'"),
        ("explain", {"file": "x", "packet": 1, "message": "FetchRequest"}, "leave out message"),
        (
            "decode",
            {"file": "../outside.hex", "packet": 1},
            "expected a relative path below the root",
        ),
        ("frames", {"file": "../outside.hex"}, "expected a relative path below the root"),
        ("frames", {"file": "request.hex"}, "CaptureError: request.hex"),
        ("frames", {"file": "captures"}, "is not a regular file"),
        ("frames", {"file": VIEWED, "apis": ["Fetsh"]}, "did you mean 'Fetch'"),
        ("frames", {"file": VIEWED, "apis": "Fetch"}, "at `$.apis`"),
        ("frames", {"file": VIEWED, "topics": ["x"] * 101}, "at `$.topics`"),
        ("decode", {"message": "Metadta", "data": "00", "version": 1}, "MetadataRequest"),
        ("decode", {"message": "MetadataRequest", "data": "00"}, "version is missing"),
        ("schema_show", {}, "missing required field `message`"),
        ("schema_show", {"message": "Metadta"}, "MetadataRequest"),
        ("schema_show", {"message": "FetchRequest", "release": "9.9"}, "4.4.0"),
        ("schema_show", {"message": "FetchRequest", "rows": 0}, "at `$.rows`"),
        ("schema_show", {"message": "FetchRequest", "rows": MOST_ROWS + 1}, "at `$.rows`"),
        ("audit", {"analysis": "captures"}, "there is no 'captures/tables' below the root"),
        ("audit", {"analysis": "/"}, "expected a relative path below the root"),
        ("answers", {"analysis": "analysis", "name": "talker"}, "did you mean 'talkers'?"),
        ("answers", {"analysis": "analysis", "out": "x"}, "unknown field `out`"),
        ("list", {"directory": "analysis/.."}, "expected a relative path below the root"),
        ("list", {"directory": "request.hex"}, "is not a directory"),
    ],
)
def test_a_refusal_says_what_was_expected(
    root: ServedRoot, tool: str, arguments: dict[str, Any], told: str
) -> None:
    text = refusal(root, tool, **arguments)
    assert told in text
    assert len(text) < 2_100


def test_more_bytes_than_a_tool_reads_are_refused(root: ServedRoot, tmp_path: Path) -> None:
    made = make_served(tmp_path / "other")
    (tmp_path / "other" / "large").write_bytes(b"\0" * (MOST_BYTES + 1))
    assert "got more than" in refusal(made, "decode", file="large")
    assert "at `$.data`" in refusal(root, "decode", data="0" * (MOST_BYTES + 2))
    # Three lines claim more bytes than their characters could hold.
    dump = f"00000000  {'00 ' * 16} |................|\n*\n{MOST_BYTES + 32:08x}\n"
    assert "got more than" in refusal(root, "decode", data=dump)


@pytest.mark.parametrize(
    "place", ["facts.json", "tables", "tables/answers/talkers/talkers.parquet"]
)
def test_a_link_in_an_analysis_is_not_followed(tmp_path: Path, place: str) -> None:
    root = make_served(tmp_path / "root")
    inside = tmp_path / "root" / "analysis" / place
    inside.rename(tmp_path / "elsewhere")
    inside.symlink_to(tmp_path / "elsewhere")
    text = refusal(root, "answers", analysis="analysis", name="talkers")
    assert "is a symbolic link, which is not followed" in text


@pytest.mark.parametrize("content", [b"", b"{}", b"[" * 100_000, b'{"title": "secret"}', b"\xff"])
def test_facts_that_are_none_are_refused_without_quoting_them(
    tmp_path: Path, content: bytes
) -> None:
    root = make_served(tmp_path / "root")
    (tmp_path / "root" / "analysis" / "facts.json").write_bytes(content)
    for tool in ("audit", "answers"):
        text = refusal(root, tool, analysis="analysis")
        assert text == (
            "InputError: analysis/facts.json does not contain facts that this release of flexwire "
            "can read"
        )


def test_facts_may_be_as_large_as_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_served(tmp_path / "root")
    size = (tmp_path / "root" / "analysis" / "facts.json").stat().st_size
    monkeypatch.setattr(analyses_module, "MOST_FACTS_BYTES", size)
    ask(root, "audit", analysis="analysis")
    monkeypatch.setattr(analyses_module, "MOST_FACTS_BYTES", size - 1)
    told = refusal(root, "audit", analysis="analysis")
    assert f"is larger than {size - 1:,} bytes" in told


def test_a_damaged_table_of_an_answer_is_an_error_of_ours(tmp_path: Path) -> None:
    root = make_served(tmp_path / "root")
    table = tmp_path / "root" / "analysis" / "tables" / "answers" / "talkers" / "talkers.parquet"
    whole = table.read_bytes()
    for content in (b"", whole[:-5], whole[:100] + b"\xff" * 50 + whole[150:]):
        table.write_bytes(content)
        text, _ = server_module.call_tool_now(
            root, _tool("answers"), {"analysis": "analysis", "name": "talkers"}
        )
        assert text.startswith(("StorageError: ", '{"result"')), text
        assert str(tmp_path) not in text


def _tool(name: str) -> tools_module.Tool:
    return next(tool for tool in TOOLS if tool.name == name)


def test_rows_are_read_across_the_batches_of_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyses_module, "MOST_ROWS", 4)
    root = make_served(tmp_path / "root")
    folder = tmp_path / "root" / "analysis" / "tables" / "answers" / "talkers"
    pq.write_table(pa.table({"client_id": range(25)}), folder / "talkers.parquet", row_group_size=7)
    given = {"analysis": "analysis", "name": "talkers"}
    for skip, rows in [(0, 1), (3, 9), (6, 2), (20, 10), (25, 1), (90, 1)]:
        text = ask(root, "answers", **given, skip=skip, rows=rows)
        found = [row["client_id"] for row in json.loads(text)["result"]["rows"]]
        assert found == [*range(25)][skip : skip + rows]


def test_an_analysis_without_traffic_has_no_audit(tmp_path: Path) -> None:
    root = make_served(tmp_path / "root")
    facts = replace(SAMPLE, logs=LogFacts(0, 0, 0, 0, 0, 0), source_files=0)
    (tmp_path / "root" / "analysis" / "facts.json").write_text(json.dumps(facts.to_json()))
    assert "contains no traffic" in refusal(root, "audit", analysis="analysis")


def test_an_analysis_that_stored_no_answer_says_how_to_store_them(tmp_path: Path) -> None:
    root = make_served(tmp_path / "root")
    (tmp_path / "root" / "analysis" / "facts.json").write_text(json.dumps(SAMPLE.to_json()))
    for given in ({}, {"name": "latency"}):
        assert "--answers all" in refusal(root, "answers", analysis="analysis", **given)


def test_a_defect_is_told_without_its_text(
    root: ServedRoot, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> dict[str, Any]:
        raise LookupError(HOSTILE)

    broken = replace(_tool("list"), answer=fail)
    text, is_error = server_module.call_tool_now(root, broken, {})
    assert is_error
    assert text.startswith("the tool failed because of a bug in flexwire")
    assert "the tool list failed" in caplog.text


def test_every_argument_of_every_tool_is_described() -> None:
    for tool in TOOLS:
        schema = tool.input_schema
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        for name, form in schema["properties"].items():
            assert form["description"].endswith("."), (tool.name, name)
