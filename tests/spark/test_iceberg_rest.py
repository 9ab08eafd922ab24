"""Iceberg tables can be in a REST catalog, which is named by options or the environment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from pyiceberg.utils.config import Config

from flexwire.cli.app import app
from flexwire.errors import StorageError
from flexwire.spark.delta import layout
from flexwire.spark.iceberg.output import output
from flexwire.spark.publishing.catalogs import IcebergCatalog
from flexwire.storage.output_directory import OutputDirectory
from tests.capture.interleaved import CLEAN, write_capture
from tests.spark.grown import MESSAGE
from tests.spark.iceberg_rest import TOKEN, RestHandler, rest_catalog
from tests.spark.test_iceberg import analyze, exact, plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with rest_catalog(tmp_path) as address:
        monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__TOKEN", TOKEN)
        read_environment(monkeypatch)
        yield address


def read_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pyiceberg read the environment again, which it otherwise reads only on import."""
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())


@pytest.mark.long
@pytest.mark.slow
def test_tables_grow_in_a_rest_catalog(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = OutputDirectory(str(tmp_path / "out"))
    lake = IcebergCatalog("lake.kafka", {"type": "rest", "uri": address})
    monkeypatch.setattr(layout, "possible_tables", lambda: [*layout.ALWAYS, MESSAGE])
    assert analyze(out, "one", where=lake)
    # The responses to three commits are lost.
    RestHandler.lost[:] = [1, 1, 1]
    assert analyze(out, "two", where=lake)
    assert RestHandler.lost == []
    assert not analyze(out, "one", where=lake)
    for name in ("frames", MESSAGE):
        # Only the path is passed. The output names the catalog, and the environment contains the
        # token.
        assert plain(out, name) == exact(out, name) == ["one", "two"]
    kept = json.loads(out.read("catalog/catalog.json"))
    assert kept["properties"] == {"type": "rest", "uri": address}
    assert not out.exists("catalog/catalog.db")
    analyze(out, "new", where=lake, append=False)
    assert plain(out) == exact(out) == ["new"]
    monkeypatch.delenv("PYICEBERG_CATALOG__LAKE__TOKEN")
    read_environment(monkeypatch)
    with pytest.raises(StorageError, match="cannot open the catalog of") as told:
        output(out.url)
    assert TOKEN not in str(told.value)


def test_an_address_without_a_server_is_told(tmp_path: Path) -> None:
    lake = IcebergCatalog("lake.kafka", {"type": "rest", "uri": "http://127.0.0.1:9"})
    with pytest.raises(StorageError, match="cannot open the catalog of"):
        analyze(OutputDirectory(str(tmp_path / "out")), "one", where=lake)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_the_command_takes_a_catalog(address: str, tmp_path: Path) -> None:
    captures = write_capture(tmp_path / "captures", 1, CLEAN)
    out = tmp_path / "out"
    given = ["--iceberg-catalog", "lake.kafka", "--iceberg-property", "type=rest"]
    given += ["--iceberg-property", f"uri={address}"]
    command = ["analyze", *map(str, captures), "--out", str(out), "--tables", "iceberg", *given]
    result = CliRunner().invoke(app, [*command, "--append"])
    assert result.exit_code == 0, result.output
    assert output(out).table("frames").num_rows > 0
    for wrong, told in [
        (["--tables", "delta"], "--iceberg-catalog is for Iceberg tables"),
        (["--register", "spark_catalog.kafka"], "--register is for Parquet and Delta tables"),
        (["--iceberg-property", "uri"], "expected NAME=VALUE"),
    ]:
        result = CliRunner().invoke(app, [*command, *wrong])
        assert result.exit_code == 2
        assert told in " ".join(result.output.split())
