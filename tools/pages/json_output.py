"""docs/json.md: the shape of each command's output with ``--format json``, based on real runs."""

from __future__ import annotations

import json
import logging
import re
import shlex
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa
from click.testing import CliRunner

from flexwire.answers.asking.results import AnswerResult
from flexwire.capture.files.packets import UnreadableBytes
from flexwire.capture.files.pcapng import PcapngWriter
from flexwire.capture.tls import OpenedCaptures
from flexwire.capture.tls.connections import TlsCounts
from flexwire.cli import capture_open, tables, warmup
from flexwire.cli.app import app
from flexwire.codec import message
from flexwire.demo.outcome import ClientOutcome
from flexwire.demo.run import DemoOutcome, DemoTraffic
from flexwire.facts.answers import UnansweredQuestion
from flexwire.facts.facts import LogFacts, RequestLogFacts
from flexwire.kernels import KernelStatus
from flexwire.messages import MetadataRequest, MetadataResponse
from flexwire.records import Record, encode_batch
from flexwire.spark.analyze import Analysis
from flexwire.spark.delta.grown import FileGroup
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables.output import Output
from flexwire.tap import HostPort, TapStatistics
from tests.codec_vectors.kept import FEW
from tests.conformance.brokers import SILENCE, kafka_like, offering, with_correlation_id
from tests.net.answering import Answers, answering
from tests.protocol.payloads import frame, make, request_payload, response_payload
from tests.report.sample import EMPTY, SAMPLE
from tests.spark.asked import TALKERS
from tools.pages.files import DOCS, write_files

if TYPE_CHECKING:
    from flexwire.facts.facts import Facts
    from flexwire.protocol import RequestFrame

PAGE = DOCS / "json.md"
_SAYING_NOTHING = """while read line; do echo '{"hex": ""}'; done"""
_HEAD = """# What commands print as JSON

This page shows the structure of the JSON that each command prints with `--format json`. The page is
generated from real runs of the commands, and a test compares the page with their output. A key
whose name ends in `?` is not in every element. `a | b` means either `a` or `b`. `{text: int}` is an
object whose keys are data. All other keys begin with a lowercase letter, as in Kafka's own JSON.
Later releases may add keys to an object, but keep the keys that this page lists. Standard error is
not JSON: it contains errors, progress, and notes, which `-q` suppresses. Exit codes are the same in
every format.

`decode` and `call` print JSON by default, and text with `--format text`. The JSON form of a message
is the form of Kafka's own converters: the keys are the field names in the message's spec. The key
`_unknownTaggedFields` contains the tagged fields that the spec does not define. With `--lines`,
`decode` prints one JSON object per line. If the input line is invalid, the object is
`{"error": …}`. If the input line contains several frames, the key `frames` contains them. If a
frame is cut off, the object also has the keys `error` and `present`, the number of bytes that are
present. The `length` of such a frame is null if it is unknown. The JSON of `answers` contains the
rows of each answer under the name of the answer; [answers](answers.md) lists the columns. `analyze`
and `demo` print a summary, and the file `facts` contains everything that they found. For
`schema docs`, `--format` is the format of its pages, and `completion` prints a shell script.
`python -m tools.pages.json_output` writes this page.
"""
SPEC = """{"apiKey": 900, "type": "request", "name": "PingRequest", "validVersions": "0",
  "flexibleVersions": "0+", "listeners": ["broker"], "fields": [
  {"name": "ErrorCode", "type": "int16", "versions": "0+"},
  {"name": "Host", "type": "string", "versions": "0+", "tag": 0, "taggedVersions": "0+"}]}"""


def files() -> dict[Path, str]:
    """Return the page."""
    parts = [_HEAD]
    for name, values in _printed().items():
        parts.append(f"## flexwire {name}\n```\n{shape(*values)}\n```\n")
    return {PAGE: "\n".join(parts)}


def _printed() -> dict[str, list[Any]]:
    """Return the JSON of some runs of a command, or the lines of one run."""
    found: dict[str, list[Any]] = {}
    with tempfile.TemporaryDirectory() as given:
        for name, arguments in command_lines(Path(given)).items():
            # Names that differ only in spaces stand for several runs of one command.
            found.setdefault(name.strip(), []).extend(_run(arguments, lines="each line" in name))
    counts = TlsCounts(partly=Counter({"a reason": 1}), unopened=Counter({"a reason": 1}))
    counts.damaged.append(UnreadableBytes("a", 0, "a reason"))
    found["capture open"] = [capture_open._as_json(OpenedCaptures((Path("a"),), counts))]  # noqa: SLF001 - its run would need a key log
    files = ({"path": "a"},)
    groups = [FileGroup("frames", "2026-11-22", files), FileGroup("packets", None, files)]
    shape_of_groups = tables._as_json(groups, dry_run=True)  # noqa: SLF001 - its run would need tables
    found |= {f"tables {one}": [shape_of_groups] for one in ("compact", "retain", "undo", "vacuum")}
    found["analyze"] = [_of_analysis(facts) for facts in (SAMPLE, _LOGS, _ASKED)]
    found["demo"] = [_of_demo()]
    found["answers"] = [_of_answers()]
    found |= _of_calls()
    found["tap, each line"] = tap_output()
    ran_on = [
        KernelStatus("Cython", None, True, "a reason"),
        KernelStatus("nothing", None, False, ""),
    ]
    found["warmup"] = [
        warmup._as_json(running, seconds)  # noqa: SLF001 - a run would compile kernels
        for running, seconds in zip(ran_on, (1.0, None), strict=True)
    ]
    return found


def _run(arguments: list[str], *, lines: bool = False) -> list[Any]:
    ran = CliRunner().invoke(app, [*arguments, "--format", "json"])
    if not ran.stdout:
        raise RuntimeError(f"{arguments} printed nothing: {ran.output} {ran.exception}")
    return [json.loads(one) for one in (ran.stdout.splitlines() if lines else [ran.stdout])]


def command_lines(place: Path) -> dict[str, list[str]]:
    """Return the arguments of each command that is run, with its files below ``place``."""
    metadata = frame(request_payload(3, 12, make("MetadataRequest"))).hex()
    record = Record(0, 5, b"order-7", b"paid", [(b"trace", b"a1")])
    specs = place / "releases" / "4.4.0" / "clients"
    specs.mkdir(parents=True)
    (specs / "PingRequest.json").write_text(SPEC, encoding="utf-8")
    log = place / "00000000000000000000.log"
    log.write_bytes(encode_batch([record]) + b"damage")
    told, older = str(specs), place / "older"
    older.mkdir()
    (older / "PingRequest.json").write_text(SPEC.replace("int16", "int32"), encoding="utf-8")
    vectors = place / "some.jsonl"
    sent = {"message": "HeartbeatResponse", "version": 4, "hex": "00000000001900"}
    vectors.write_text(json.dumps(sent) + '\n{"message": "None", "version": 0, "hex": ""}')
    explained = ["explain", "MetadataRequest", "-V", "4"]
    return {
        "decode": ["decode", "MetadataRequest", "-V", "4", "0000000100016101"],
        "decode --frame": ["decode", "--frame", metadata],
        "decode --frame --compact, several and the last cut off, each line": [
            *("decode", "--frame", metadata + metadata[:-4], "--compact")
        ],
        "explain": [*explained, "0000000100016101"],
        "explain ": [*explained, "0000000100016101ff"],
        "explain --frame": ["explain", "--frame", metadata],
        "explain --size": ["explain", "--size", "369295616"],
        "encode": ["encode", "MetadataRequest", '{"topics": null}', "-V", "1"],
        "generate, each line": ["generate", "MetadataRequest", "-V", "4"],
        "generate --frame, each line": ["generate", "MetadataRequest", "-V", "4", "--frame"],
        "generate --hostile, each line": ["generate", "MetadataRequest", "-V", "4", "--hostile"],
        "schema bench": ["schema", "bench", str(older), told],
        "schema list": ["schema", "list", "Metadata"],
        "schema resolve": ["schema", "resolve", "FetchRequest", "-V", "12"],
        "schema errors": ["schema", "errors"],
        "schema lint": ["schema", "lint", told],
        "schema breaking": ["schema", "breaking", told, "--against", str(older)],
        "schema cost": ["schema", "cost", "--vectors", str(vectors), "--error-tags"],
        "schema error-tags": ["schema", "error-tags", told, "--out", str(place / "tagged")],
        "schema import": [
            *("schema", "import", str(specs.parents[1]), "--fresh", "--out", str(place / "c"))
        ],
        "records dump --deep, each line": ["records", "dump", str(log), "--deep"],
        "vectors check": [
            *("vectors", "check", str(FEW), "--case", "HeartbeatRequest/0/full"),
            *("--case", "HeartbeatRequest/0/hostile/appended-0"),
            *("--codec", "sh -c " + shlex.quote(_SAYING_NOTHING)),
        ],
        "who, each line": ["who", str(_some_connections(place))],
        "who, each line ": ["who", str(_some_lines(place))],
    }


def _some_lines(place: Path) -> Path:
    """Write a request log with one line."""
    said = {
        "requestHeader": {"requestApiKey": 3, "requestApiVersion": 12, "correlationId": 1},
        "request": {"topics": None},
        "response": {"throttleTimeMs": 0},
        "connection": "127.0.0.1:9092-127.0.0.1:50000-0-1",
        "totalTimeMs": 1.0,
        "principal": "User:a",
    }
    log = place / "kafka-request.log"
    log.write_text(f"[2026-11-22 20:00:00,123] DEBUG Completed request:{json.dumps(said)}\n")
    return log


def _some_connections(place: Path) -> Path:
    """Write a capture of a connection with an error and a waiting request, and of a silent one."""
    software = make("ApiVersionsRequest", client_software_name="a", client_software_version="1")
    asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="a")])
    unknown = MetadataResponse.MetadataResponseTopic(error_code=3, name="a")
    failed = MetadataResponse(topics=[unknown])
    with PcapngWriter(place / "captures") as writer:
        for port, is_answered in ((50000, True), (50001, False)):
            connection = writer.open_connection(("127.0.0.1", port), ("127.0.0.1", 9092))
            connection.send("request", frame(request_payload(18, 3, software, correlation_id=1)))
            if is_answered:
                for _ in range(2):
                    connection.send("request", frame(request_payload(3, 12, asked)))
                connection.send("response", frame(response_payload(3, 12, failed)))
                connection.close()
    return place / "captures"


_LOGS = replace(
    EMPTY, logs=LogFacts(topics=1, partitions=1, segments=1, bytes=70, batches=1, records=1)
)
_ASKED = replace(
    SAMPLE,
    request_logs=RequestLogFacts(files=1, server_logs=0, lines=1, requests=1),
    unanswered=(UnansweredQuestion("lag", "Who lags?", "a reason"),),
)


def analysis_of(facts: Facts) -> Analysis:
    """Return an analysis that found these facts."""
    return Analysis(Output(OutputDirectory("out")), facts, {}, notes=("a note",))


def _of_analysis(facts: Facts) -> Any:
    with patch("flexwire.spark.analyze.analyze", return_value=analysis_of(facts)):
        return _run(["analyze", "captures", "--out", "out"])[0]


def _of_demo() -> Any:
    client = ClientOutcome(
        client="aiokafka", version="0.12", client_ids=("a",), failures=("a failure",)
    )
    outcome = DemoOutcome(DemoTraffic((client,), (), ()), analysis_of(SAMPLE))
    with patch("flexwire.demo.run.run_demo", return_value=outcome):
        return _run(["demo"])[0]


def _of_answers() -> Any:
    seen = pa.Table.from_pylist([{"client_id": "a", "bytes": 1}])
    again: dict[str, Any] = {
        "stored_answers": lambda *_, **__: [AnswerResult(TALKERS, seen, 1)],
        "notes_of": lambda _: [],
        "sampled_in": lambda _: (),
    }
    with patch.multiple("flexwire.spark.answers.outputs", **again):
        return _run(["answers", "out", "talkers"])[0]


def _of_calls() -> dict[str, list[Any]]:
    failing = {"topics": [{"name": "a", "errorCode": 3}]}
    with answering(Answers({"ApiVersions": (0, 3), "Metadata": (0, 12)}, Metadata=failing)) as (
        address,
        _,
    ):
        asked = _run(["call", address, "Metadata", '{"topics": null}', "--version", "4"])
        called = {"call": asked, "call --apis": _run(["call", address, "--apis"])}
    return called | _of_conformance()


def _of_conformance() -> dict[str, list[Any]]:
    """Return a run against a broker that answers as Kafka does, except in three Metadata versions.

    A second broker lacks a version of Metadata. The command runs with both brokers twice, once in
    each order.
    """

    def plant(request: RequestFrame, _: bytes, answer: bytes) -> bytes:
        if request.api_name != "Metadata" or request.api_version not in {5, 6, 7}:
            return frame(answer)
        if request.api_version == 5:  # noqa: PLR2004 - a version
            return frame(with_correlation_id(answer, 1))
        refused = kind.of(topics=[{"error_code": 29, "name": "a"}])
        told = response_payload(3, 7, refused, correlation_id=request.correlation_id)
        return frame(told) if request.api_version == 7 else SILENCE  # noqa: PLR2004 - a version

    kind: Any = message("MetadataResponse")
    with kafka_like(plant) as (address, _), kafka_like(offering({3: (0, 12)})) as (other, _):
        given = ["conform", address, "--apis", "Metadata,FindCoordinator", "--hostile"]
        return {
            "conform": [
                *_run([*given, "--timeout", "5"]),
                *_run([*given, "--timeout", "5", "--against", other]),
                *_run(["conform", other, *given[2:], "--timeout", "5", "--against", address]),
                # This broker never reports that a group does not exist.
                *_run(["conform", other, "--apis", "DeleteGroups", "--write"]),
            ],
            "conform --dry-run": _run([*given, "--dry-run"]),
        }


def tap_output() -> list[Any]:
    """Return the output of a tap that is stopped as soon as it listens."""

    async def run_tap(*_: Any, ready: Any, **__: Any) -> TapStatistics:
        ready(SimpleNamespace(listen_address=HostPort("127.0.0.1", 19092)))
        return TapStatistics(requests=3)

    arguments = ["tap", "--upstream", "b:9092", "--out", "captures", "--format", "json"]
    # If a handler already exists, the tap does not set one up.
    handlers = patch.object(logging.root, "handlers", [logging.NullHandler()])
    with patch("flexwire.tap.tap.run_tap", run_tap), handlers:
        ran = CliRunner().invoke(app, arguments)
    if ran.exit_code:
        raise RuntimeError(ran.output)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def shape(*values: Any, indent: str = "") -> str:
    """Return the common shape of several values."""
    kinds = dict.fromkeys(_kind(one) for one in values)
    return " | ".join(
        _of_kind(kind, [one for one in values if _kind(one) == kind], indent)
        for kind in sorted(kinds)
    )


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        # Rows of several kinds are mixed, and their type distinguishes them.
        return f"object {value['type']}" if value.get("type") in _ROWS else "object"
    names = {bool: "true or false", int: "int", float: "float", str: "text", list: "list"}
    return "null" if value is None else names[type(value)]


_ROWS = {"file", "batch", "record", "finding", "gap", "listening", "stopped"}


def _of_kind(kind: str, values: list[Any], indent: str) -> str:
    within = indent + "  "
    if kind == "list":
        items = [item for one in values for item in one]
        return f"[{shape(*items, indent=indent) if items else ''}]"
    if not kind.startswith("object"):
        return kind
    names = dict.fromkeys(name for one in values for name in one)
    if not names:
        return "{}"
    if not any(re.fullmatch(r"_?[a-z]\w*", name) for name in names):
        return (
            "{text: " + shape(*(one[name] for one in values for name in one), indent=indent) + "}"
        )
    lines = []
    for name in names:
        inner = [one[name] for one in values if name in one]
        if name == "type" and kind != "object":
            lines.append(f'{within}"type": "{inner[0]}"')
            continue
        mark = "" if len(inner) == len(values) else "?"
        lines.append(f'{within}"{name}"{mark}: {shape(*inner, indent=within)}')
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


if __name__ == "__main__":
    write_files(files())
