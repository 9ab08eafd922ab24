"""Whatever a command prints, no foreign character controls the terminal.

The tests put hostile text into every input of a command, and run each command as a shell does. No
such character may reach standard output or standard error.
"""

from __future__ import annotations

import io
import json
import logging
import re
import sys
import unicodedata
from typing import TYPE_CHECKING, Any

import click
import pytest

import flexwire
from flexwire.cli import main, terminal
from flexwire.cli.app import app
from flexwire.cli.records_dump_rows import finding_row
from flexwire.cli.records_dump_text import DumpText
from flexwire.cli.terminal import EscapedStream, styled
from flexwire.logs.segments import Damage
from flexwire.printable import printable
from flexwire.records import Record
from flexwire.records.conventions import CONVENTIONS
from flexwire.tap.metrics import TapStatistics
from tests.each import each

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OBEYED = [
    char
    for char in map(chr, range(sys.maxunicode + 1))
    if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
]
# One name of each kind is enough here, because the whole list would be long.
SOME = "a\x00\x07\x1b[2J\r\x7f\x85\x9b31m\xad\u061c\u200b\u200e\u200f\u2028\u2029\u202e\u2066\u2069"
# Text that looks like the beginning of a flexwire line, or of a command for GitHub's runners.
FORGED = "::error::forged"
SOME += f"\ufeff\U000e0041\n{FORGED}\n"
IN_UTF8 = "".join(char for char in OBEYED if unicodedata.category(char) != "Cs")
# In Python, arguments and paths represent bytes that are not text as surrogates.
IN_A_PATH = SOME.replace("\x00", "") + "\udcff"


def test_the_characters_that_people_were_fooled_with_are_among_them() -> None:
    fooled = [*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F)]
    fooled += [*range(0x2066, 0x206A), 0xFEFF, 0xD800, 0xDFFF, 0xE0001]
    assert set(map(chr, fooled)) <= {*OBEYED, "\u202f"}


@each("char", OBEYED[:80] + list(SOME) + OBEYED[80::97])
def test_an_escape_is_the_one_of_json(char: str) -> None:
    text = f'{char}"é'
    written = printable(json.dumps(text, ensure_ascii=False))
    assert json.loads(written) == text
    assert char not in printable(text) or char.isprintable()


def test_every_character_is_escaped_and_what_prints_is_left_alone() -> None:
    assert not set(OBEYED) & set(printable("".join(OBEYED)))
    for text in ("Größe\u00a0\u3000日本語 \U0001f600", "", "\\u0041"):
        assert printable(text) == text


class _Run:
    """The output of one command line."""

    def __init__(self, arguments: tuple[str, ...], patch: pytest.MonkeyPatch) -> None:
        out, err = io.BytesIO(), io.BytesIO()
        # An unreferenced stream closes its bytes, which are read here.
        streams = [io.TextIOWrapper(one, "utf-8", write_through=True) for one in (out, err)]
        with patch.context() as patched:
            patched.setattr(sys, "argv", ["flexwire", *arguments])
            patched.setattr(sys, "stdout", streams[0])
            patched.setattr(sys, "stderr", streams[1])
            with pytest.raises(SystemExit) as ended:
                main()
        self.code = ended.value.code
        self.out, self.err = out.getvalue().decode(), err.getvalue().decode()
        shown = set(self.out + self.err) - {"\n"}
        assert not shown & set(OBEYED), arguments
        assert not [line for line in self._lines() if line.startswith(FORGED)], arguments

    def _lines(self) -> Iterator[str]:
        return (line.strip() for line in (self.out + self.err).split("\n"))


def commands(group: click.Group, *above: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, *above, name)
        else:
            yield (*above, name), command


@pytest.mark.parametrize(("words", "command"), [*commands(app)], ids=str)
def test_usage_errors_of_every_command_show_what_they_got(
    words: tuple[str, ...],
    command: click.Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    given = IN_A_PATH
    refused = [_Run((*words, f"--{given}"), monkeypatch)]
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.is_flag:
            line = (*words, parameter.opts[0], given, given, given, given)
            refused.append(_Run(line, monkeypatch))
    assert "\\u202e" in refused[0].err
    for run in refused:
        assert run.code not in {0, None}
    assert not list(tmp_path.iterdir())


def test_a_terminal_that_has_only_ascii_is_no_way_round(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, "ascii", write_through=True)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "argv", ["flexwire", IN_A_PATH])
        patched.setattr(sys, "stderr", stream)
        with pytest.raises(SystemExit):
            main()
    stream.flush()
    told = raw.getvalue().decode("ascii")
    assert "\\u202e" in told
    assert "\x1b" not in told


def test_decode_and_explain_show_every_text(monkeypatch: pytest.MonkeyPatch) -> None:
    header = flexwire.message("RequestHeader")(client_id=IN_UTF8)
    data = header.encode(1).hex()
    for more in ((), ("--compact",)):
        run = _Run(("decode", "RequestHeader", data, "--version", "1", *more), monkeypatch)
        assert json.loads(run.out)["clientId"] == IN_UTF8
    run = _Run(("explain", "RequestHeader", data, "--version", "1"), monkeypatch)
    assert "\\u2069" in run.out
    assert len(run.out.splitlines()) == run.out.count("\n")
    line = ("explain", "RequestHeader", data, "--version", "1", "--format", "json")
    told = json.loads(_Run(line, monkeypatch).out)
    assert IN_UTF8 in [one["value"] for one in told["annotations"]]


@pytest.mark.parametrize(
    "form", [{SOME: 1}, {"clientId": {SOME: SOME}}, {"requestApiKey": SOME}, [SOME], SOME]
)
def test_errors_of_encode_show_what_they_got(
    form: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / IN_A_PATH
    place.write_text(json.dumps(form), encoding="utf-8")
    for source in (str(place), json.dumps(form, ensure_ascii=False).replace("\x00", "")):
        run = _Run(("encode", "RequestHeader", source, "--version", "1"), monkeypatch)
        assert run.code == 1
    place.write_text(SOME, encoding="utf-8")
    _Run(("encode", "RequestHeader", str(place), "--version", "1"), monkeypatch)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write a log with a damaged last batch, in a directory with a hostile name."""
    text = IN_UTF8.encode()
    record = Record(0, 0, text, text, [(text, text), (b"b", b"\x1b\xff")])
    batch = flexwire.records.encode_batch([record])
    place = tmp_path / f"{IN_A_PATH}\n-0" / "00000000000000000000.log"
    place.parent.mkdir()
    place.write_bytes(batch + batch[:-1] + b"\x00")
    return place


@pytest.mark.parametrize("convention", [None, *CONVENTIONS])
def test_records_dump_shows_paths_keys_values_and_headers(
    log: Path, convention: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = ("--deep",) if convention is None else ("--headers", convention)
    run = _Run(("records", "dump", str(log), *chosen), monkeypatch)
    assert "\\u202e" in run.out
    # The name of a path cannot start a line of its own.
    assert not any(line.startswith("-0") for line in run.out.splitlines())
    run = _Run(("records", "dump", str(log), "--format", "json", *chosen), monkeypatch)
    rows = [json.loads(line) for line in run.out.splitlines()]
    assert rows[0]["file"] == str(log)
    record = next(row for row in rows if row["type"] == "record")
    assert record["key"] == record["value"] == record["headers"][0]["key"] == IN_UTF8


def test_colours_are_all_that_a_terminal_is_told_of_records() -> None:
    nested = {"message": SOME, "version": 1, "name": SOME, "release": SOME, "data": {SOME: SOME}}
    told = DumpText(width=60, colour=True)
    rows: list[dict[str, Any]] = [
        {"type": "file", "file": SOME, "size": 1},
        {"file": SOME, **finding_row(Damage(0, 1, SOME))},
        {"type": "record", "key": SOME, "value": nested, "headers": [{"key": SOME, "value": SOME}]},
        {"type": "record", "value": {"base64": "", "reason": SOME}, "control": {"type": SOME}},
        {"type": "producer", "file": SOME, "state": SOME, "nested": nested},
    ]
    for row in rows:
        for line in told.lines(row):
            assert re.sub(r"\x1b\[[0-9]*m", "", line).isprintable()


def test_what_is_styled_passes_and_what_is_printed_does_not() -> None:
    raw = io.BytesIO()
    stream = EscapedStream(raw, "utf-8", write_through=True)
    print("\x1b[1m", file=styled(stream))
    print("\x1b[1m", file=stream)
    stream.writelines(["\x1b", "\n"])
    assert raw.getvalue() == b"\x1b[1m\n\\u001b[1m\n\\u001b\n"
    assert styled(sys.stdout) is sys.stdout


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.own_process
def test_the_log_of_the_tap_shows_addresses_on_one_line_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = f"{IN_UTF8}\nERROR made up"

    async def run_tap(*_: Any, ready: Any, **__: Any) -> TapStatistics:
        log = logging.getLogger("flexwire.tap")
        log.info("clients reach %s through port %d", evil, 1)
        log.error("%s: closed", evil)
        log.error("defect", exc_info=ValueError(evil))
        ready(type("Tap", (), {"listen_address": (evil, 1)}))
        return TapStatistics()

    monkeypatch.setattr("flexwire.tap.tap.run_tap", run_tap)
    # If a log handler exists already, nothing is set up.
    monkeypatch.setattr(logging.root, "handlers", [])
    level = logging.root.level
    out = str(tmp_path / f"{IN_A_PATH}\nout")
    run = _Run(("tap", "--upstream", "localhost:1", "--out", out), monkeypatch)
    logging.root.setLevel(level)
    assert len(run.out.splitlines()) == 1
    assert run.err.splitlines()[0].startswith("INFO clients reach \\u0000")
    assert run.err.splitlines()[1].startswith("ERROR \\u0000")


def _specs(place: Path) -> Path:
    """Write specs with only hostile strings, in a directory and a file with hostile names."""
    place.mkdir()
    spec: dict[str, Any] = {
        "apiKey": 0,
        "type": "request",
        "name": "FooRequest",
        "listeners": [SOME],
        "validVersions": "0-1",
        "flexibleVersions": "1+",
        "fields": [{"name": "Text", "type": "string", "versions": "0+", "default": SOME}],
    }
    spec["fields"][0]["about"] = SOME
    damaged = {**spec, "name": SOME, "type": SOME, SOME: SOME, "validVersions": SOME}
    written = {
        "FooRequest": spec,
        "BarRequest": damaged,
        "RawRequest": spec,
        f"{IN_A_PATH}Request": spec,
    }
    for name, one in written.items():
        # With escapes, the strings are valid in a spec; without escapes they are invalid JSON.
        text = json.dumps(one) if name != "RawRequest" else f"// {SOME}\n{json.dumps(one)}"
        (place / f"{name}.json").write_text(text, encoding="utf-8")
    return place


def _spec_commands() -> Iterator[tuple[str, ...]]:
    for output in ("text", "json", "github-actions", "junit", "sarif"):
        yield ("schema", "lint", "OLD", "--format", output)
        yield ("schema", "breaking", "NEW", "--against", "OLD", "--format", output)
    yield ("schema", "docs", "OLD", "--out", "OUT")
    yield ("schema", "import", "OLD", "--out", "OUT")
    yield ("schema", "error-tags", "OLD", "--out", "OUT")
    yield ("schema", "cost", "--vectors", "OLD/FooRequest.json", "--specs", "OLD")
    yield ("decode", "FooRequest", "00", "--version", "0", "--specs", "OLD")
    yield ("analyze", "OLD", "--out", "OUT", "--broker", SOME.replace("\x00", ""))
    yield ("analyze", "OLD/no", "--out", "OUT")


@pytest.mark.parametrize("line", [*_spec_commands()], ids=" ".join)
def test_commands_over_specs_show_names_and_paths(
    line: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {
        "OLD": str(_specs(tmp_path / f"{IN_A_PATH}old")),
        "NEW": str(_specs(tmp_path / f"{IN_A_PATH}new")),
        "OUT": str(tmp_path / f"{IN_A_PATH}out"),
    }
    for name, place in places.items():
        line = tuple(word.replace(name, place) for word in line)
    run = _Run(line, monkeypatch)
    assert run.code not in {0, None}
    assert "\\u202e" in run.out + run.err or "/u202e" in run.out


@pytest.mark.parametrize("named", ["", "cp1252"])
def test_a_pipe_is_utf_8_where_it_would_have_a_code_page(
    monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    # Windows behaves like this, and so does a terminal with another code page.
    monkeypatch.setattr(terminal, "_HAS_CODE_PAGES", True)
    monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    if named:
        monkeypatch.setenv("PYTHONIOENCODING", named)
    raw = io.BytesIO()
    plain = io.TextIOWrapper(raw, encoding="cp1252")
    stream = terminal._guard(plain)
    stream.write("é Ж")
    stream.flush()
    assert raw.getvalue() == (b"\xe9 \\u0416" if named else "é Ж".encode())
