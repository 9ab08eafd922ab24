"""What `analyze` refuses before Spark starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app

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
