"""`analyze` rejects invalid arguments before Spark starts."""

from __future__ import annotations

import json
from inspect import signature
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from flexwire.cli.analyze import _print_places
from flexwire.cli.analyze import analyze as command
from flexwire.cli.app import app
from flexwire.spark.analyze import Analysis, analyze
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables.output import Output
from tests.report.sample import EMPTY, SAMPLE

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["--broker", "kafka:9092"],
            "got 'kafka:9092'; a capture contains addresses, not host names",
        ),
        (["--broker", "::1:9092"], "as 10.0.0.1:9092 or [::1]:9092, got '::1:9092'"),
        (["--broker", "10.0.0.1:9092", "--broker", "10.0.0.1"], "got '10.0.0.1'"),
        (["--port", "0"], "0 is not in the range 1<=x<=65535"),
        (["--port", "kafka"], "'kafka' is not a valid integer"),
    ],
)
def test_a_broker_that_is_not_an_address_is_a_usage_error(
    tmp_path: Path, arguments: list[str], told: str
) -> None:
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["analyze", str(tmp_path), "--out", str(out), *arguments])
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())
    assert not out.exists()


def test_an_option_of_the_command_has_the_default_that_it_has_in_python() -> None:
    # In Python, `--tables` is the argument `format`; `--format` is the form of the command's
    # output.
    told = {
        "format" if one.name == "tables" else one.name: one.default
        for one in command.params
        if isinstance(one.default, str) and one.name != "output"
    }
    parameters = signature(analyze).parameters
    assert told == {name: parameters[name].default for name in ("format", "memory", "timezone")}


def test_answers_are_asked_of_the_output_and_not_of_one_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = OutputDirectory(f"{tmp_path}/out/runs/20261122T000000Z-00000000")
    _print_places(Analysis(Output(place), EMPTY, {}), f"{tmp_path}/out")
    assert capsys.readouterr().out.endswith(f"flexwire answers {tmp_path}/out\n")


def test_the_old_spelling_of_the_tables_format_is_taken_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def run(*_: object, format: str, **__: object) -> Analysis:  # noqa: A002 - `analyze` has this argument
        asked.append(format)
        return Analysis(Output(OutputDirectory(f"{tmp_path}/out")), SAMPLE, {})

    monkeypatch.setattr("flexwire.spark.analyze.analyze", run)
    start = ["analyze", "captures", "--out", str(tmp_path / "out")]
    told = [
        CliRunner().invoke(app, [*start, *more])
        for more in (["--tables", "delta"], ["--format", "delta"], ["--format", "json"])
    ]
    named = CliRunner().invoke(app, [*start, "--release", "4.0", "--release", "4.4.0"])
    assert named.stderr == "--release 4.0 is 4.0.2, the newest such release in the catalog\n"
    assert asked == ["delta", "delta", "parquet", "parquet"]
    assert [one.exit_code for one in told] == [0, 0, 0]
    assert told[1].stdout == told[0].stdout
    assert (
        told[1].stderr == "--format delta is now called --tables delta; the old name still works\n"
    )
    form = json.loads(told[2].stdout)
    assert (form["traffic"]["frames"], form["report"]) == (
        SAMPLE.totals.frames,
        f"{tmp_path}/out/report.html",
    )
    assert [one["release"] for one in form["audit"]] == list(SAMPLE.audit.releases)
    # JSON and text contain the same sentences about clients that break.
    assert all(said["sentence"] in told[0].stdout for one in form["audit"] for said in one["says"])
