"""Every output format of a command is valid: its own parser reads it through a pipe.

Output to a file or a pipe is data: another program reads it. Control characters are escaped if the
format allows it (JSON), or if a terminal reads the output. Each new command or format needs a case
here.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import re
import shlex
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import click
import click.shell_completion
import pyarrow as pa
import pytest

import flexwire
from flexwire.answers.asking.results import AnswerResult
from flexwire.capture.files.packets import UnreadableBytes
from flexwire.capture.tls import OpenedCaptures
from flexwire.capture.tls.connections import TlsCounts
from flexwire.cli import main
from flexwire.cli.app import app
from flexwire.cli.terminal import EscapedStream
from flexwire.demo.run import DemoOutcome, DemoTraffic
from flexwire.records import Record, encode_batch
from flexwire.spark.delta.grown import FileGroup
from flexwire.tap import HostPort, TapStatistics
from tests.capture.traffic import framed, packet, pcap
from tests.cli.test_json_page import _leaves
from tests.cli.test_terminal import IN_A_PATH, IN_UTF8, OBEYED, SOME, _specs
from tests.codec_vectors.kept import FEW
from tests.net.answering import Answers, answering
from tests.protocol.payloads import request_payload
from tests.report.sample import SAMPLE
from tests.spark.asked import TALKERS
from tools.pages.json_output import SPEC, analysis_of, command_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow

# Strings that a careless writer mishandles: numbers, formulas, quotes, lines, control characters.
VALUES = ["-1", "=1+1", 'say "hi", now', "a\r\nb", "a\rb", "\n", "", " x "]
VALUES += ["Größe 日本語 \U0001f600", SOME, IN_UTF8]
ROWS = pa.table({"client_id": VALUES, 'a "name", of\r\ntwo lines': range(len(VALUES))})

# These rows fill only the first of the displayed columns.
TOLD = replace(TALKERS, shown=("client_id",))


def piped(*arguments: str, encoding: str = "utf-8") -> tuple[int, bytes]:
    """Run a command as a shell does, with its output in a pipe; return its exit code and output."""
    reading, writing = os.pipe()
    errors = io.BytesIO()
    streams = (
        os.fdopen(writing, "w", encoding=encoding),
        io.TextIOWrapper(errors, "utf-8", write_through=True),
    )
    # A pipe has a limited size, so another thread reads at the same time.
    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(whole, reading)
        with streams[0], pytest.MonkeyPatch.context() as patched:
            patched.setattr(sys, "argv", ["flexwire", *arguments])
            for name, stream in zip(("stdout", "stderr"), streams, strict=True):
                patched.setattr(sys, name, stream)
            with pytest.raises(SystemExit) as ended:
                main()
        data = reader.result()
    told = errors.getvalue().decode()
    assert ended.value.code in {0, 1, 100}, told
    assert data, told
    return int(ended.value.code or 0), data


def whole(descriptor: int) -> bytes:
    """Return everything that a pipe delivers."""
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


# A reader for each format. Each reader returns the content, and raises an error if the format is
# invalid.
def of_json(data: bytes) -> Any:
    return json.loads(data.decode(), parse_constant=refuse)


def of_lines(data: bytes) -> Any:
    assert data.endswith(b"\n")
    return [of_json(line) for line in data.removesuffix(b"\n").split(b"\n")]


def refuse(name: str) -> Any:
    raise ValueError(f"{name} is not in JSON")


def of_csv(data: bytes) -> list[list[str]]:
    rows = [*csv.reader(io.StringIO(data.decode(), newline=""), strict=True)]
    assert len({len(row) for row in rows}) == 1
    assert len({*rows[0]}) == len(rows[0])
    return rows


def of_junit(data: bytes) -> Any:
    root = ET.fromstring(data)  # noqa: S314 - flexwire wrote the XML
    assert root.tag in {"testsuites", "testsuite"}
    found = [*root.iter("testcase")]
    assert found
    assert sum(int(one.get("tests", "0")) for one in root.iter("testsuite")) == len(found)
    return found


def of_sarif(data: bytes) -> Any:
    found = of_json(data)
    assert found["version"] == "2.1.0"
    [run] = found["runs"]
    rules = [one["id"] for one in run["tool"]["driver"]["rules"]]
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["message"]["text"]
    return run["results"]


def of_actions(data: bytes) -> Any:
    lines = data.decode().splitlines()
    command = re.compile(r"::(error|warning|notice) ((?:\w+=[^,:]*(?:%3A[^,:]*)*,?)+)::(.+)")
    found = [command.fullmatch(line) for line in lines]
    assert all(found), lines
    return found


def of_text(data: bytes) -> str:
    text = data.decode()
    assert not {*text} - {"\n"} & {*OBEYED}
    return text


class Nested(HTMLParser):
    """Check a page: all elements are closed, in the right order."""

    EMPTY = frozenset({"meta", "link", "br", "hr", "img", "input", "col", "wbr"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> without a beginning"
        assert self.open.pop() == tag


def of_html(out: Path) -> None:
    pages = [*out.rglob("*.html")]
    assert pages
    for page in pages:
        nested = Nested()
        nested.feed(page.read_text(encoding="utf-8"))
        nested.close()
        assert nested.open == []


def of_markdown(out: Path) -> None:
    pages = [*out.rglob("*.md")]
    assert pages
    for page in pages:
        lines = page.read_text(encoding="utf-8").splitlines()
        for line, after in pairwise(lines):
            if line.startswith("|") and after.startswith("|"):
                columns = [len(re.findall(r"(?<!\\)\|", one)) for one in (line, after)]
                assert columns[0] == columns[1], (page.name, line, after)


READERS: dict[str, Callable[[bytes], Any]] = {
    "text": of_text,
    "table": of_text,
    "json": of_json,
    "csv": of_csv,
    "junit": of_junit,
    "sarif": of_sarif,
    "github-actions": of_actions,
    # These options name the format of tables; the summary is text.
    "parquet": of_text,
    "delta": of_text,
}
LINES = {"who", "records dump", "tap", "decode --lines", "generate"}
FILES = {"html": of_html, "markdown": of_markdown}
REPEATING = 'while read line; do printf "%s\\n" "$0"; done'
CLIENT = f"{IN_UTF8}Größe 日本語 \U0001f600"
HEADER = flexwire.message("RequestHeader")(client_id=CLIENT).encode(1).hex()


def hostile_capture(place: Path) -> Path:
    """Write a capture of a client with a hostile name."""
    # A name with control characters is not evidence for Kafka, so another request comes first.
    sent = b"".join(
        framed(request_payload(3, 1, b"\xff" * 4, client_id=name)) for name in ("a", CLIENT)
    )
    capture = place / f"{IN_A_PATH}.pcap"
    capture.write_bytes(pcap([packet(sent)]))
    return capture


def room(place: Path) -> dict[str, list[str]]:
    """Return the arguments of each command for hostile names and contents below a directory."""
    usual = command_lines(place)
    specs = _specs(place / f"{IN_A_PATH}é specs")
    text = IN_UTF8.encode()
    log = place / f"{IN_A_PATH}-0" / "00000000000000000000.log"
    log.parent.mkdir()
    log.write_bytes(encode_batch([Record(0, 0, text, text, [(text, b"\xff")])]) + b"damage")
    other = place / f"{IN_A_PATH}other"
    other.mkdir()
    changed = SPEC.replace('"int16"', f'"int64", "about": {json.dumps(SOME)}')
    (other / "PingRequest.json").write_text(changed, encoding="utf-8")
    lines = place / "lines"
    lines.write_text(f"{HEADER}\n00\n")
    header = ["RequestHeader", HEADER, "--version", "1"]
    out = ["--out", str(place / "out")]
    return usual | {
        "decode": ["decode", *header],
        "decode --lines": ["decode", "RequestHeader", str(lines), "--version", "1", "--lines"],
        "explain": ["explain", *header],
        "schema lint": ["schema", "lint", str(specs)],
        "schema breaking": ["schema", "breaking", str(other), "--against", usual["schema lint"][2]],
        "schema bench": ["schema", "bench", usual["schema lint"][2], str(other)],
        "generate": ["generate", "RequestHeader", "--version", "1", "--count", "3"],
        "schema docs markdown": ["schema", "docs", *out],
        "schema docs html": ["schema", "docs", str(other), *out],
        "records dump": ["records", "dump", str(log), "--deep"],
        "capture open": ["capture", "open", str(log), "--keys", str(lines), *out],
        "analyze": ["analyze", "captures", *out],
        "demo": ["demo", *out],
        "answers": ["answers", "analysis", "talkers"],
        "tap": ["tap", "--upstream", "b:9092", *out],
        "who": ["who", str(hostile_capture(place))],
        **{f"tables {one}": ["tables", one, "out"] for one in ("compact", "vacuum")},
        "tables retain": ["tables", "retain", "out", "--days", "1"],
        "tables undo": ["tables", "undo", "out", "20261122T101500Z-1a2b3c4d"],
        "warmup": ["warmup"],
        "vectors check": [
            *("vectors", "check", str(FEW), "--case", "HeartbeatRequest/0/*", "--codec"),
            shlex.join(["sh", "-c", REPEATING, json.dumps({"refused": SOME})]),
        ],
        "call": ["call", "ADDRESS", "Metadata", '{"topics": null}', "--version", "4"],
        "call --apis": ["call", "ADDRESS", "--apis"],
        "conform": ["conform", "ADDRESS"],
        "conform --dry-run": ["conform", "ADDRESS", "--dry-run"],
    }


@contextmanager
def surroundings(command: str) -> Iterator[dict[str, str]]:
    """Replace what Spark, a broker or the network returns to a command."""
    counts = TlsCounts(partly=Counter({SOME: 1}), unopened=Counter({SOME: 1}))
    counts.damaged.append(UnreadableBytes(SOME, 0, SOME))
    opened = OpenedCaptures((Path(IN_A_PATH),), counts)

    async def run_tap(*_: Any, ready: Any, **__: Any) -> TapStatistics:
        ready(SimpleNamespace(listen_address=HostPort(IN_UTF8, 19092)))
        return TapStatistics(requests=3)

    with ExitStack() as stack:
        replacements = {
            "flexwire.capture.tls.captures.open_sources": lambda *_: opened,
            "flexwire.capture.tls.captures.read_key_logs": lambda _: None,
            "flexwire.spark.analyze.analyze": lambda *_, **__: analysis_of(SAMPLE),
            "flexwire.demo.run.run_demo": lambda *_, **__: DemoOutcome(
                DemoTraffic((), (), ()), analysis_of(SAMPLE)
            ),
            "flexwire.spark.answers.outputs.stored_answers": lambda *_, **__: [
                AnswerResult(TOLD, ROWS, len(ROWS))
            ],
            "flexwire.spark.answers.outputs.notes_of": lambda _: [],
            "flexwire.spark.answers.outputs.sampled_in": lambda _: (),
            **{
                f"flexwire.spark.delta.upkeep.{one}": lambda *_: [
                    FileGroup(IN_UTF8, None, ({"path": IN_A_PATH, "size": 1},))
                ]
                for one in ("to_join", "to_retire", "unnamed_files")
            },
            **{
                f"flexwire.spark.delta.upkeep.{one}": lambda *_: None
                for one in ("join", "retire", "remove_unnamed_files")
            },
            "flexwire.spark.delta.staging.to_undo": lambda *_: [
                FileGroup(IN_UTF8, None, ({"path": IN_A_PATH, "size": 1},))
            ],
            "flexwire.spark.delta.staging.undo": lambda *_: None,
            "flexwire.spark.delta.staging.upkeep_lock": lambda *_, **__: nullcontext([]),
            "flexwire.tap.tap.run_tap": run_tap,
            "flexwire.cli.warmup.find_spec": lambda _: None,
        }
        for name, replacement in replacements.items():
            stack.enter_context(patch(name, replacement))
        stack.enter_context(patch.object(logging.root, "handlers", [logging.NullHandler()]))
        address = ""
        if command.startswith(("call", "conform")):
            told = {"topics": [{"name": IN_UTF8, "errorCode": 3}]}
            broker = Answers({"ApiVersions": (0, 3), "Metadata": (0, 12)}, Metadata=told)
            address, _ = stack.enter_context(answering(broker))
        yield {"ADDRESS": address}


def formats() -> Iterator[tuple[str, str]]:
    """Yield each command with each of its formats."""
    for name, command in _leaves(app):
        for option in command.params:
            if "--format" in option.opts:
                assert isinstance(option.type, click.Choice)
                for choice in option.type.choices:
                    yield name, str(getattr(choice, "value", choice))


# Commands with their own way of printing.
MORE = [("decode --lines", "json"), ("decode --frame", "json"), ("decode --frame", "text")]
MORE += [("explain --frame", "json"), ("explain --frame", "text")]
MORE += [("call --apis", "json"), ("call --apis", "text")]
MORE += [("conform --dry-run", "json"), ("conform --dry-run", "text")]


@pytest.mark.parametrize(("command", "output"), [*formats(), *MORE])
def test_a_format_through_a_pipe_is_read_by_its_parser(
    command: str, output: str, tmp_path: Path
) -> None:
    given = room(tmp_path)
    arguments = given.get(f"{command} {output}") or given[command]
    with surroundings(command) as found:
        _, data = piped(*(found.get(one, one) for one in arguments), "--format", output)
    if output in FILES:
        FILES[output](tmp_path / "out")
    elif output == "json" and command in LINES:
        assert of_lines(data)
    else:
        assert READERS[output](data)


def test_every_way_is_a_command() -> None:
    names = {name for name, _ in formats()}
    assert {name.partition(" --")[0] for name, _ in MORE} <= names
    assert {output for _, output in formats()} == {*READERS, *FILES}


def test_csv_in_a_pipe_is_that_of_the_file_with_every_value(tmp_path: Path) -> None:
    with surroundings("answers"):
        _, data = piped(*room(tmp_path)["answers"], "--format", "csv")
    assert data == AnswerResult(TOLD, ROWS, len(ROWS)).csv().encode()
    head, *rows = of_csv(data)
    assert head == ROWS.column_names
    assert [row[0].removeprefix("'") for row in rows] == VALUES
    assert [row[0] for row in rows if row[0].startswith("'")] == ["'=1+1", "'\n"]
    assert "-1" in [row[0] for row in rows]
    assert data.count(b"\r\n") > len(rows)


class Terminal(io.BytesIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_csv_on_a_terminal_has_lines_and_nothing_that_it_obeys() -> None:
    text = AnswerResult(TOLD, ROWS, len(ROWS)).csv()
    raw = Terminal()
    EscapedStream(raw, "utf-8").write_data(text)
    shown = raw.getvalue().decode()
    assert not {*shown} - {"\n"} & {*OBEYED}
    assert not re.search(r"\\u000d$", shown, re.MULTILINE)
    assert shown.startswith('client_id,"a ""name"", of\ntwo lines"\n-1,0\n\'=1+1,1\n')


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("command", ["decode", "answers"])
def test_json_is_json_whatever_the_locale(command: str, encoding: str, tmp_path: Path) -> None:
    with surroundings(command):
        line = [*room(tmp_path)[command], "--format", "json"]
        _, expected = piped(*line)
        _, data = piped(*line, encoding=encoding)
    assert json.loads(data.decode(encoding)) == of_json(expected)
    assert command != "decode" or of_json(expected)["clientId"] == CLIENT


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize(
    ("command", "output"),
    [("answers", "csv"), *(("schema lint", one) for one in ("junit", "sarif", "github-actions"))],
)
def test_what_names_its_encoding_is_utf_8_whatever_the_locale(
    command: str, output: str, encoding: str, tmp_path: Path
) -> None:
    with surroundings(command):
        line = [*room(tmp_path)[command], "--format", output]
        expected = piped(*line)
        assert piped(*line, encoding=encoding) == expected
    # A path in a URI contains only ASCII characters.
    assert output == "sarif" or not expected[1].isascii()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_of_completion_is_as_the_library_wrote_it(shell: str) -> None:
    _, data = piped("completion", shell)
    made = click.shell_completion.get_completion_class(shell)
    assert made is not None
    source = made(app, {}, "flexwire", "_FLEXWIRE_COMPLETE")
    assert data.decode() == source.source_template % source.source_vars() + "\n"
