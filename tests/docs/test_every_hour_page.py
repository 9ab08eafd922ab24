"""docs/every-hour.md: its units and jobs are well formed, and their commands add captures once."""

from __future__ import annotations

import json
import shlex
from configparser import ConfigParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.spark.delta.output import output
from tests.capture.interleaved import CLEAN, write_capture
from tests.house.test_readme import blocks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "every-hour.md").read_text(encoding="utf-8")


def texts(language: str) -> list[str]:
    return [block.text for block in blocks(PAGE) if block.language == language]


def units() -> list[ConfigParser]:
    parsed = [ConfigParser() for _ in texts("ini")]
    for parser, text in zip(parsed, texts("ini"), strict=True):
        parser.read_string(text)
    return parsed


def test_units_and_definitions_are_well_formed() -> None:
    service, timer = units()
    assert (service["Service"]["Type"], timer["Timer"]["OnCalendar"]) == ("oneshot", "hourly")
    airflow, _ = texts("python")
    compile(airflow, "airflow", "exec")
    [job] = map(json.loads, texts("json"))
    assert job["max_concurrent_runs"] == 1


def test_all_run_one_command() -> None:
    shown = texts("console")[0].removeprefix("$ ").strip()
    assert units()[0]["Service"]["ExecStart"] == f"/opt/flexwire/bin/{shown}"
    assert "--tables delta --append" in texts("python")[0]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_command_adds_captures_once(tmp_path: Path) -> None:
    captures, out = tmp_path / "captures", tmp_path / "out"
    _, *arguments = shlex.split(units()[0]["Service"]["ExecStart"])
    places = {"/var/captures": str(captures), "/var/kafka-tables": str(out)}
    arguments = [places.get(argument, argument) for argument in arguments]
    write_capture(captures, 1, CLEAN)
    rows = []
    for _ in range(2):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        rows.append(output(out).table("frames").num_rows)
    assert rows[0] == rows[1] > 0


@pytest.mark.long
@pytest.mark.spark
def test_the_script_adds_captures_once(spark: SparkSession, tmp_path: Path) -> None:
    write_capture(tmp_path / "captures", 1, CLEAN)
    script = texts("python")[1].replace("/Volumes/main/kafka", str(tmp_path))
    before = dict(spark.conf.getAll)
    for _ in range(2):
        exec(compile(script, "append.py", "exec"), {})  # noqa: S102 - the page's own block
    assert dict(spark.conf.getAll) == before
    assert output(tmp_path / "tables").table("frames").num_rows > 0
