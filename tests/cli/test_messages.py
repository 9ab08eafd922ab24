"""decode, encode and explain convert bytes to JSON and back, and errors state where and why."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from flexwire.cli import main
from flexwire.cli.options import ENCODINGS
from flexwire.codec import Encoding

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "0012000300000007000161012a01ff"
FORM = {
    "requestApiKey": 18,
    "requestApiVersion": 3,
    "correlationId": 7,
    "clientId": "a",
    "_unknownTaggedFields": [{"tag": 42, "data": "/w=="}],
}


class Run:
    """Run the command line in this process, and keep its output."""

    def __init__(self, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.capsys = capsys
        self.patch = patch
        self.code: object = None
        self.out = ""
        self.err = ""

    def __call__(self, *arguments: str) -> Run:
        self.patch.setattr(sys, "argv", ["flexwire", *arguments])
        with pytest.raises(SystemExit) as caught:
            main()
        self.code = caught.value.code
        self.out, self.err = self.capsys.readouterr()
        return self


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(capsys, monkeypatch)


@pytest.mark.parametrize(
    "given",
    [
        HEADER,
        HEADER.upper(),
        "0x" + HEADER,
        " ".join(HEADER[i : i + 2] for i in range(0, len(HEADER), 2)),
        base64.b64encode(bytes.fromhex(HEADER)).decode(),
    ],
)
def test_decode_takes_hex_and_base64(run: Run, given: str) -> None:
    ran = run("decode", "RequestHeader", given, "--version", "2")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out) == FORM


def test_decode_takes_files_raw_or_written_down(run: Run, tmp_path: Path) -> None:
    raw, text = tmp_path / "header.bin", tmp_path / "header.txt"
    raw.write_bytes(bytes.fromhex(HEADER))
    text.write_text(HEADER + "\n", encoding="ascii")
    for arguments in ([str(raw)], [str(text), "--as", "hex"]):
        ran = run("decode", "RequestHeader", *arguments, "-V", "2", "--compact")
        assert json.loads(ran.out) == FORM
        assert ran.out.count("\n") == 1


def test_hex_with_a_slip_is_said_to_be_read_as_something_else(run: Run, tmp_path: Path) -> None:
    text = tmp_path / "header.txt"
    text.write_text(HEADER.replace("7", "O", 1), encoding="ascii")
    slip = "'O' in line 1, column 16, is not a hex digit"
    ran = run("decode", "RequestHeader", str(text), "-V", "2")
    assert ran.err.startswith(f"{text} is read as raw bytes, but looks like hex; {slip}\n")
    quiet = run("decode", "RequestHeader", str(text), "-V", "2", "-q")
    assert "looks like hex" not in quiet.err
    for words in ([str(text), "--as", "hex"], [HEADER.replace("7", "O", 1)]):
        ran = run("decode", "RequestHeader", *words, "-V", "2")
        assert ran.code == 1
        assert ran.err.endswith(f"; {slip}\n")
    # The text contains only base64 characters, but is not valid base64.
    padded = "00120003000000O7" + "0" * 16
    ran = run("decode", "RequestHeader", padded, "-V", "2")
    assert ran.err.startswith(
        "DATA is read as base64, but looks like hex; 'O' in line 1, column 15"
    )
    assert "looks like hex" not in run("decode", "RequestHeader", padded, "-V2", "--as=base64").err
    # For a large file, only the beginning is checked.
    text.write_bytes(b"00" * 4_000_000 + b"0")
    assert "looks like hex" not in run("decode", "RequestHeader", str(text), "-V", "2").err
    # Raw bytes are almost never hex.
    text.write_bytes(bytes.fromhex(HEADER))
    assert run("decode", "RequestHeader", str(text), "-V", "2").err == ""


def test_encode_is_the_reverse_of_decode(run: Run, tmp_path: Path) -> None:
    text = json.dumps(FORM)
    file = tmp_path / "header.json"
    file.write_text(text, encoding="utf-8")
    assert run("encode", "RequestHeader", text, "-V", "2").out == HEADER + "\n"
    assert run("encode", "RequestHeader", str(file), "-V", "2").out == HEADER + "\n"
    encoded = run("encode", "RequestHeader", text, "-V", "2", "--as", "base64").out
    assert base64.b64decode(encoded).hex() == HEADER


def test_encode_names_all_that_is_missing_and_fills_it_in_when_asked_to(run: Run) -> None:
    ran = run("encode", "RequestHeader", '{"correlationId": 7}', "-V", "2")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "use --defaults to fill in the defaults from the spec\n"
        "MissingFieldsError: RequestHeader v2 at requestApiKey:\n"
        "  missing, and mandatory in this version, as are requestApiVersion, clientId\n"
    )
    filled = run("encode", "RequestHeader", '{"correlationId": 7}', "-V", "2", "--defaults")
    assert (filled.code, filled.out) == (0, "0000000000000007000000\n")


def test_encode_says_what_a_version_leaves_out(run: Run) -> None:
    partition = {"partition": 0, "logStartOffset": 5}
    form = json.dumps({"topics": [{"topic": "a", "partitions": [partition]}], "rackId": "r"})
    ran = run("encode", "FetchRequest", form, "-V", "4", "--defaults")
    assert ran.err == (
        "version 4 does not contain topics[].partitions[].logStartOffset and rackId, so this data "
        "was left out; the spec permits this\n"
    )
    assert run("encode", "FetchRequest", form, "-V", "4", "--defaults", "-q").err == ""
    assert run("encode", "FetchRequest", form, "-V", "11", "--defaults").err == ""
    newest = run("encode", "FetchRequest", form, "-V", "13", "--defaults")
    assert newest.err.startswith(
        "version 13 does not contain topics[].topic, so this data was left out; "
    )
    # Omitting a default value loses nothing.
    form = json.dumps({"topics": [], "rackId": ""})
    assert run("encode", "FetchRequest", form, "-V", "4", "--defaults").err == ""


def test_explain_says_what_each_byte_is(run: Run) -> None:
    ran = run("explain", "RequestHeader", HEADER, "-V", "2")
    assert ran.code == 0
    assert [line.split() for line in ran.out.splitlines()][:3] == [
        ["offset", "bytes", "field", "type", "value"],
        ["0", "00", "12", "requestApiKey", "INT16", "18"],
        ["2", "00", "03", "requestApiVersion", "INT16", "3"],
    ]
    told = json.loads(run("explain", "RequestHeader", HEADER, "-V", "2", "--format", "json").out)
    assert told["rest"] == 15
    assert told["annotations"][-1]["value"] == "ff"


def test_explain_gives_the_name_of_an_error_code(run: Run) -> None:
    ran = run("explain", "HeartbeatResponse", "00000000001000", "-V", "4")
    assert ran.out.splitlines()[2].split()[-3:] == ["INT16", "16", "NOT_COORDINATOR"]
    told = run("explain", "HeartbeatResponse", "00000000001000", "-V", "4", "--format", "json")
    assert [one.get("error") for one in json.loads(told.out)["annotations"]] == [
        None,
        "NOT_COORDINATOR",
        None,
    ]
    # An error code that no release defines, and a field of the same type that is not an error code.
    assert (
        run("explain", "HeartbeatResponse", "000000007fff00", "-V", "4")
        .out.splitlines()[2]
        .endswith("32767")
    )
    assert run("explain", "RequestHeader", HEADER, "-V", "2").out.splitlines()[1].endswith(" 18")


def test_explain_shows_what_precedes_an_error_and_what_does_not_decode(run: Run) -> None:
    ran = run("explain", "RequestHeader", "001200030000000700ff6162", "-V", "1")
    assert ran.code == 1
    assert "correlationId" in ran.out
    assert "00 ff 61 62" in ran.out
    assert "(not decoded)" in ran.out
    assert ran.err == (
        "DecodeError: RequestHeader v1 at clientId, byte 10:\n"
        "  declared length 255 but 2 bytes remain\n"
    )


def test_standard_input_is_read_as_a_file_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, text in (
        ([], bytes.fromhex(HEADER)),
        (["--as", "hex"], b"0x" + HEADER.encode()),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        ran = run("decode", "RequestHeader", "-", "-V", "2", *arguments)
        assert json.loads(ran.out) == FORM
    monkeypatch.setattr(sys, "stdin", None)
    assert run("decode", "RequestHeader", "-", "-V", "2").err == (
        "InputError: standard input is closed\n"
    )


def shell(script: str) -> subprocess.CompletedProcess[str]:
    command = f'flexwire() {{ "{sys.executable}" -m flexwire "$@"; }}; {script}'
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, timeout=300
    )


AT_THE_EDGE = [
    (f"flexwire decode RequestHeader {HEADER} -V 2 > /dev/full", 1, "No space left on device"),
    ("flexwire schema list > /dev/full", 1, "No space left on device"),
    (f"flexwire decode RequestHeader {HEADER} -V 2 >&-", 1, "standard output is closed"),
    ("flexwire decode RequestHeader - -V 2 <&-", 1, "standard input is closed"),
    ("flexwire decode RequestHeader . -V 1", 1, ".: Is a directory"),
    (
        "flexwire decode RequestHeader ./none -V 1",
        1,
        "there is no file './none', and the text does not encode bytes",
    ),
    ("printf '\\xff' | flexwire encode RequestHeader -V 2", 1, "standard input: 'utf-8' codec"),
    (
        "printf '[%.0s' $(seq 60000) | flexwire encode RequestHeader -V 2",
        1,
        "standard input: nested too deeply",
    ),
    (
        "PYTHONIOENCODING=ascii flexwire decode RequestHeader 00120003000000070002c3a9 -V 1",
        0,
        "",
    ),
    ("flexwire schema list | head -1; exit ${PIPESTATUS[1]}", 0, ""),
]


@pytest.mark.slow
@pytest.mark.parametrize(("script", "code", "told"), AT_THE_EDGE)
def test_no_traceback_at_the_edges_of_a_shell(script: str, code: int, told: str) -> None:
    done = shell(script)
    assert done.returncode == code
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


FAULTS = [
    (["decode", "RequestHeader", "00", "-V", "2"], 1, "at requestApiKey, byte 0:\n  INT16 takes"),
    (["decode", "RequestHeadr", "00", "-V", "2"], 1, "did you mean RequestHeader"),
    (["decode", "RequestHeader", "00", "-V", "9"], 1, "RequestHeader has no version 9"),
    (["decode", "RequestHeader", "00", "-V", "1", "--release", "1.0"], 1, "no release '1.0'"),
    (["decode", "RequestHeader", "zz?", "-V", "2"], 1, "'zz?' is not hex, base64 or a file"),
    (["encode", "RequestHeader", "{]", "-V", "2"], 1, "the JSON given: "),
    (["encode", "RequestHeader", "{}", "-V", "2"], 1, "at requestApiKey:\n  missing"),
    (["encode", "RequestHeader", "/no/such/file", "-V", "2"], 1, "neither JSON nor a file"),
    (["decode", "RequestHeader", "00"], 2, "--version is missing: give the version"),
    (
        ["decode", "RequestHeader", "00", "-V", "x"],
        2,
        "is not a version: expected 0 to 32767, or latest",
    ),
    (["frobnicate"], 2, "No such command 'frobnicate'"),
]


@pytest.mark.parametrize(("arguments", "code", "told"), FAULTS)
def test_faults_have_an_exit_code_and_a_reason(
    run: Run, arguments: list[str], code: int, told: str
) -> None:
    ran = run(*arguments)
    assert ran.code == code
    assert told in ran.err
    assert ran.out == ""


def test_a_release_is_named_to_reach_a_layout_that_changed(run: Run) -> None:
    # The preview of KIP-932 had no leader epoch; 4.1 added one to the same version.
    arguments = ["encode", "ReadShareGroupStateSummaryResponse", '{"results": []}', "-V", "0"]
    assert run(*arguments, "--release", "4.0").out == "0100\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["decode", "MetadataRequest", "00000000", "-V", "1"],
        ["encode", "RequestHeader", json.dumps(FORM), "-V", "2"],
        ["explain", "RequestHeader", HEADER, "-V", "2"],
        ["schema", "list"],
        ["--help"],
    ],
)
def test_what_should_answer_in_a_blink_loads_nothing_heavy(arguments: list[str]) -> None:
    script = (
        "import sys, atexit\n"
        "heavy = {'numpy', 'pyarrow', 'pandas', 'pyspark', 'asyncio', 'rich'}\n"
        "atexit.register(lambda: print(heavy & set(sys.modules), file=sys.stderr))\n"
        f"sys.argv = ['flexwire', *{arguments!r}]\n"
        "from flexwire.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stderr == "set()\n"


@pytest.mark.parametrize(
    ("encoding", "raw"),
    [
        ("kafka", "0012000300000007000161012a01ff"),
        ("interleaved", "0012000300000007000161018911ff"),
        ("optional-buffers", "02002aff00" + "0012000300000007000161"),
    ],
)
def test_the_drafts_write_the_same_message_in_other_bytes(
    run: Run, encoding: str, raw: str
) -> None:
    where = ("--version", "2", "--encoding", encoding)
    assert run("encode", "RequestHeader", json.dumps(FORM), *where).out.strip() == raw
    assert json.loads(run("decode", "RequestHeader", raw, *where).out) == FORM
    told = run("explain", "RequestHeader", raw, *where, "--format", "json")
    assert json.loads(told.out)["error"] is None


def test_every_encoding_is_offered() -> None:
    assert [one.value for one in Encoding] == ENCODINGS
