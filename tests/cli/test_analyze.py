"""What `analyze` refuses before Spark starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from flexwire.cli.analyze import _tell_where
from flexwire.cli.app import app
from flexwire.spark.analyze import Analysis
from flexwire.storage.place import Place
from flexwire.tables.reading import Output
from tests.report.sample import EMPTY

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--broker", "kafka:9092"], "got 'kafka:9092'; a capture has addresses, not host names"),
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


def test_answers_are_asked_of_the_output_and_not_of_one_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Place(f"{tmp_path}/out/runs/20261122T000000Z-00000000")
    _tell_where(Analysis(Output(place), EMPTY, {}), f"{tmp_path}/out")
    assert capsys.readouterr().out.endswith(f"flexwire answers {tmp_path}/out\n")
