"""``--memory`` and ``--worker-memory`` accept sizes in Java's notation, above a minimum."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from flexwire.cli.analyze import analyze
from flexwire.cli.app import app
from flexwire.cli.demo import demo


@pytest.mark.parametrize(
    ("given", "taken"), [("512m", "512m"), ("4g", "4g"), ("1G", "1g"), ("1024M", "1024m")]
)
def test_a_size_is_taken_as_java_reads_it(given: str, taken: str) -> None:
    for command in (analyze, demo):
        (option,) = [one for one in command.params if one.name == "memory"]
        assert option.type.convert(given, option, None) == taken


@pytest.mark.parametrize("given", ["512m", "1023m", "lots"])
def test_a_worker_needs_a_gigabyte(given: str) -> None:
    result = CliRunner().invoke(app, ["analyze", "--out", "nowhere", "--worker-memory", given, "."])
    assert result.exit_code == 2
    assert "Invalid value for '--worker-memory'" in result.output


@pytest.mark.parametrize("command", ["analyze", "demo"])
@pytest.mark.parametrize("given", ["511m", "0g", "2", "2gb", "-1g", "1.5g", "lots", ""])
def test_what_is_no_size_is_a_usage_error(command: str, given: str) -> None:
    arguments = [command, "--out", "nowhere", "--memory", given]
    if command == "analyze":
        arguments.append(".")
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "Invalid value for '--memory'" in result.output
