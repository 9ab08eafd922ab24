"""docs/iceberg.md: its command writes Iceberg tables, and its programs read them."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.spark.iceberg.output import output
from tests.capture.interleaved import CLEAN, write_capture
from tests.house.test_readme import blocks
from tests.spark.iceberg_connector import conf
from tests.spark.test_iceberg_connector import RUNTIMES

PAGE = (Path(__file__).parents[2] / "docs" / "iceberg.md").read_text(encoding="utf-8")


def texts(language: str) -> list[str]:
    return [block.text for block in blocks(PAGE) if block.language == language]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_its_command_writes_tables_that_its_program_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    write_capture(tmp_path / "captures", 1, CLEAN)
    program, *arguments = shlex.split(texts("console")[0].removeprefix("$ "))
    assert program == "flexwire"
    for _ in range(2):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
    assert len(output("OUT").entries) == 1
    (reading,) = texts("python")
    exec(compile(reading, "docs/iceberg.md", "exec"), {})  # noqa: S102 - the page's own block
    refused = CliRunner().invoke(app, ["tables", "compact", "OUT"])
    assert refused.exit_code != 0
    assert "CALL CATALOG.system.rewrite_data_files(table =>" in str(refused.exception)


def test_its_settings_are_those_that_are_tested() -> None:
    (shown,) = [text for text in texts("") if "JdbcCatalog" in text]
    settings = dict(line.split() for line in shown.splitlines())
    tested = conf(Path("/path/to/OUT"), "")
    assert settings == {name: tested[name] for name in settings}
    assert f"Spark 4.0 with Iceberg {RUNTIMES['4.0']}" in " ".join(PAGE.split())
