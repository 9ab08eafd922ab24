"""With --specs, commands decode, encode and explain a user's own message."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import get_args

import click
import pytest
from click.testing import CliRunner, Result

from flexwire.cli.app import app
from flexwire.cli.decode import decode
from flexwire.cli.encode import encode
from flexwire.cli.explain import explain
from flexwire.errors import SpecError, UnknownMessageError
from flexwire.schema.parse import Mode
from flexwire.schema.sources import read_sources

PING = {
    "name": "Ping",
    "type": "data",
    "validVersions": "0",
    "flexibleVersions": "0+",
    "fields": [{"name": "Text", "type": "string", "versions": "0+"}],
}


@pytest.fixture
def specs(tmp_path: Path) -> str:
    (tmp_path / "Ping.json").write_text(json.dumps(PING), encoding="utf-8")
    return str(tmp_path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def test_there_and_back(specs: str) -> None:
    assert run("encode", "Ping", '{"text": "hi"}', "-V", "0", "--specs", specs).output == (
        "03686900\n"
    )
    assert json.loads(run("decode", "Ping", "03686900", "-V", "0", "--specs", specs).output) == {
        "text": "hi"
    }
    told = run("explain", "Ping", "03686900", "-V", "0", "--specs", f"{specs}/Ping.json").output
    assert told.splitlines()[1].split() == ["0", "03", "68", "69", "text", "COMPACT_STRING", '"hi"']


def test_only_the_specs_given_are_searched(specs: str) -> None:
    with pytest.raises(UnknownMessageError, match="no message 'RequestHeader' in these specs"):
        run("decode", "RequestHeader", "00", "-V", "0", "--specs", specs)


def test_several_places_are_one_set(specs: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "Pong.json").write_text(json.dumps({**PING, "name": "Pong"}), encoding="utf-8")
    arguments = ["-V", "0", "--specs", specs, "--specs", str(other)]
    for name in ("Ping", "Pong"):
        assert run("encode", name, '{"text": "hi"}', *arguments).output == "03686900\n"


def test_the_mode_is_passed_on(specs: str, tmp_path: Path) -> None:
    (tmp_path / "Ping.json").write_text(json.dumps(PING) + " ]", encoding="utf-8")
    arguments = ["encode", "Ping", '{"text": "hi"}', "-V", "0", "--specs", specs]
    with pytest.raises(SpecError, match=r"Ping\.json:1:\d+: '\]' after the end of the spec"):
        run(*arguments)
    assert run(*arguments, "--specs-mode", "legacy").output == "03686900\n"


def test_every_mode_can_be_chosen() -> None:
    for command in (decode, encode, explain):
        (option,) = [one for one in command.params if one.name == "specs_mode"]
        assert isinstance(option.type, click.Choice)
        assert tuple(option.type.choices) == get_args(Mode)


@pytest.mark.parametrize("command", ["decode", "encode", "explain"])
def test_a_release_is_for_bundled_messages_and_a_path_must_be_there(
    command: str, specs: str
) -> None:
    arguments = [command, "Ping", "{}", "-V", "0"]
    done = run(*arguments, "--specs", specs, "--release", "3.8.1")
    assert (done.exit_code, "--release is for bundled messages" in done.output) == (2, True)
    with pytest.raises(SpecError, match="no such file or directory"):
        run(*arguments, "--specs", f"{specs}/none")


@pytest.mark.long
@pytest.mark.slow
def test_a_jar_and_a_release_are_places_too(tmp_path: Path) -> None:
    jar = tmp_path / "kafka-clients-4.5.0.jar"
    with zipfile.ZipFile(jar, "w") as made:
        for one in read_sources(["release:3.9"]):
            made.writestr(f"common/message/{Path(one.path).name}", one.content)
    vote = '{"clusterId": null, "topics": []}'
    for place in (str(jar), "release:3.9"):
        assert run("encode", "VoteRequest", vote, "-V", "0", "--specs", place).output == "000100\n"
        with pytest.raises(UnknownMessageError, match="VoteRequest has no version 2; it has 0-1"):
            run("encode", "VoteRequest", vote, "-V", "2", "--specs", place)
