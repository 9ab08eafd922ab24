"""A complete output is read by path or URL, with the columns that docs/tables.md lists."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flexwire.errors import ArgumentError, FlexwireError
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables import schema
from flexwire.tables.message_schema import table_schema
from flexwire.tables.output import CURRENT, MARKER, SUCCESS, output
from flexwire.tables.parquet import TableWriter

if TYPE_CHECKING:
    from pathlib import Path

RUN = "20261122T080000Z-0123abcd"
MESSAGE = "messages/ApiVersionsRequest"
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def write_table(
    place: OutputDirectory, name: str, columns: pa.Schema, **values: list[object]
) -> None:
    """Write two files of a table with a row each. Values that are not given are null."""
    count = len(next(iter(values.values())))
    rows = [{one: values[one][at] for one in values} for at in range(count)]
    for number, row in enumerate(rows):
        with place.writing(f"tables/{name}/{number:04}.parquet") as local:
            local.unlink()
            with TableWriter(local, columns) as writer:
                writer.write(pa.RecordBatch.from_pylist([row], columns))


def write_output(place: OutputDirectory) -> None:
    """Write an output with a table of frames, a message table, and the marker files."""
    write_table(place, "frames", schema.FRAMES_TABLE, time=[NOON, NOON], frame_index=[0, 1])
    body = {"client_software_name": "tests"}
    columns = table_schema("ApiVersionsRequest")
    write_table(place, "messages/ApiVersionsRequest", columns, size=[7], body=[body])
    place.write("facts.json", b"{}")
    for name in (MARKER, SUCCESS):
        place.write(f"tables/{name}", b"{}")


@pytest.fixture(params=["path", "store"])
def out(request: pytest.FixtureRequest, tmp_path: Path) -> OutputDirectory:
    if request.param == "path":
        write_output(OutputDirectory(str(tmp_path)))
        return OutputDirectory(str(tmp_path))
    place = OutputDirectory(f"memory://reading/{tmp_path.name}")
    write_output(place.child(f"runs/{RUN}"))
    told = {"format": 1, "run": RUN, "before": None}
    place.write(CURRENT, json.dumps(told).encode())
    return place


def test_a_table_has_the_rows_that_were_written_and_the_columns_of_the_page(
    out: OutputDirectory,
) -> None:
    found = output(out.url)
    assert found.names == ["frames", MESSAGE]
    assert found.message_names() == ["ApiVersionsRequest"]
    frames = found.table("frames")
    assert frames.schema.equals(schema.FRAMES_TABLE)
    assert frames["frame_index"].to_pylist() == [0, 1]
    assert frames["time"].to_pylist() == [NOON, NOON]
    one = found.table("frames", ["frame_index"], pc.field("frame_index") > 0)
    assert one.to_pydict() == {"frame_index": [1]}
    (row,) = found.table(MESSAGE).to_pylist()
    assert row["body"]["client_software_name"] == "tests"
    assert found.table(MESSAGE).schema.equals(table_schema("ApiVersionsRequest"))
    assert found.read("facts.json") == b"{}"
    assert found.where("facts.json") == f"{found.place}/facts.json"


def test_a_column_that_a_file_lacks_is_null(out: OutputDirectory) -> None:
    found = output(out.url)
    less = schema.FRAMES_TABLE.remove(0)
    write_table(found.place, "frames", less, frame_index=[0, 1])
    assert output(out.url).table("frames")["time"].to_pylist() == [None, None]


def test_a_table_that_there_is_not_is_told(out: OutputDirectory) -> None:
    for name in ("records", "frame", "", None):
        with pytest.raises(ArgumentError, match=r"name: expected a table of .*, got "):
            output(out.url).table(name)  # type: ignore[arg-type]  # on purpose


def test_what_is_not_complete_is_not_read(out: OutputDirectory, tmp_path: Path) -> None:
    if out.path is None:
        out.remove([CURRENT])
        with pytest.raises(
            FlexwireError, match=r"no complete analysis in memory://.*current\.json"
        ):
            output(out.url)
        return
    assert output(tmp_path / "tables") == output(tmp_path) == output(out.url)
    out.remove([f"tables/{SUCCESS}"])
    for path in (tmp_path, tmp_path / "tables"):
        with pytest.raises(
            FlexwireError, match=r"tables is unfinished, because _SUCCESS is missing"
        ):
            output(path)
    out.remove([f"tables/{MARKER}"])
    with pytest.raises(FlexwireError, match="contains no flexwire tables"):
        output(tmp_path)


def test_a_reader_reads_the_output_that_it_opened(out: OutputDirectory) -> None:
    if out.path is not None:
        return
    found = output(out.url)
    new = RUN.replace("0123", "4567")
    write_output(out.child(f"runs/{new}"))
    told = {"format": 1, "run": new, "before": RUN}
    out.write(CURRENT, json.dumps(told).encode())
    assert len(found.table("frames")) == 2
    assert output(out.url).place != found.place
