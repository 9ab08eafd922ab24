"""The examples in --help produce the results that a reader expects."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from flexwire.cli.app import EXAMPLES, app
from flexwire.schema.catalog import catalog
from flexwire.schema.write import write_spec
from tests.capture.log_vectors import BASE, write_all
from tests.cli.test_docs import all_commands
from tests.cli.test_standard_input import SPEC
from tests.spark.traffic import Traffic, made, request, response

if TYPE_CHECKING:
    from pathlib import Path

SPARK = "starts Spark; tests/spark and tests/demo run it"
BROKER = "needs a broker; tests/net and `make kafka` run it"
# Examples that are not run here, by their first words, with the reason.
WITHOUT = {
    "analyze": SPARK,
    "answers": SPARK,
    "demo": SPARK,
    "call": BROKER,
    "conform": BROKER,
    "tap": BROKER,
    "capture open": "needs TLS and its secrets; test_capture_open.py runs it",
    "mcp": "speaks to a program; tests/cli/mcp/test_server.py runs it",
    "completion": "begins in a shell; test_completion.py runs it",
    "schema import": "needs Kafka's jar; test_schema.py imports from one",
    **{
        f"tables {one}": "needs Delta tables; tests/spark/test_upkeep.py runs it"
        for one in ("compact", "retain", "undo", "vacuum")
    },
    "vectors check": "needs a codec; tests/codec_vectors/test_command.py runs it",
    "view": "needs a terminal; tests/cli/view/test_screen.py shows its screen",
    "warmup": "keeps Spark's classes; test_warmup.py runs it",
}
# The result answers the example's question: `specs` has two entries for each message, plus one.
FINDINGS = {
    "flexwire schema lint specs",
    "flexwire schema breaking specs --against release:4.0",
    "flexwire schema bench release:4.3 release:4.4 --out bench.html",
}
VERSION = 12


def examples() -> dict[str, list[str]]:
    found = {}
    for name, command in all_commands(app, "flexwire"):
        if not isinstance(command, click.Group):
            shown = f"{command.help}\n{command.epilog or ''}".splitlines()
            words, size = name.split(), len(name.split())
            found[name.removeprefix("flexwire ")] = [
                one.strip() for one in shown if one.split()[:size] == words
            ]
    return found


RUN = [one for name, shown in examples().items() if name not in WITHOUT for one in shown]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the files that the examples mention."""
    room = tmp_path_factory.mktemp("examples")
    (room / "captures").mkdir()
    traffic = Traffic(room / "captures")
    connection = traffic.connect()
    asked, told = request(made("MetadataRequest"), VERSION, 7), None
    for number in range(20):
        asked = request(made("MetadataRequest"), VERSION, number)
        told = response(made("MetadataResponse"), VERSION, number)
        traffic.send(connection, "request", asked)
        traffic.send(connection, "response", told)
    traffic.close()
    (captured,) = (room / "captures").iterdir()
    shutil.copy(captured, room / "capture.pcapng")
    assert told is not None
    for name, frame in (("request", asked), ("response", told)):
        (room / f"{name}.hex").write_text((len(frame).to_bytes(4) + frame).hex(), encoding="utf-8")
    form = {"topics": None, "allowAutoTopicCreation": True}
    form["includeTopicAuthorizedOperations"] = False
    (room / "request.json").write_text(json.dumps(form), encoding="utf-8")
    logs = room / "logs"
    write_all(logs)
    shutil.copytree(logs / "orders-none-0", room / "orders-0")
    shutil.copy(logs / "orders-none-0" / f"{BASE}.log", room)
    (room / "specs").mkdir()
    (room / "specs" / "PingRequest.json").write_text(json.dumps(SPEC), encoding="utf-8")
    for name in ("MetadataRequest", "MetadataResponse"):
        spec = write_spec(catalog().entry(name).spec(VERSION))
        (room / "specs" / f"{name}.json").write_text(spec, encoding="utf-8")
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q", "-b", "main"], ["add", "specs"], ["commit", "-qm", "specs"]):
        subprocess.run(["git", *identity, *words], cwd=room, check=True)
    return room


def test_every_command_has_examples_and_none_is_left_out_without_need() -> None:
    shown = examples()
    assert all(shown.values())
    assert set(EXAMPLES) | set(WITHOUT) <= set(shown)
    assert len(RUN) == sum(len(one) for name, one in shown.items() if name not in WITHOUT) > 20


@pytest.mark.slow
@pytest.mark.parametrize("shown", RUN)
def test_an_example_gives_what_was_asked_for(
    shown: str, room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(room)
    words = shlex.split(shown.replace("/var/kafka/data/", ""))[1:]
    ran = CliRunner().invoke(app, words, catch_exceptions=False)
    assert ran.exit_code == (100 if shown in FINDINGS else 0), ran.output
    assert ran.stdout
