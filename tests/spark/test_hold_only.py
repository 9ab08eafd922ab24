"""Files show whether columns contain only one value, even inside lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexwire.spark.answers.opened import OpenedOutput
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables.message_schema import table_schema
from flexwire.tables.output import output
from tests.tables.test_reading import write_output

if TYPE_CHECKING:
    from pathlib import Path

MESSAGE = "messages/MetadataResponse"
CODES = [
    ("body", "topics", "error_code"),
    ("body", "topics", "partitions", "error_code"),
]


def opened(root: Path, partition_code: int, *, like_arrow: bool) -> OpenedOutput:
    """Open tables, one of which contains a response with a topic and a partition."""
    write_output(OutputDirectory(str(root)))
    topic = {"error_code": 0, "partitions": [{"error_code": partition_code}]}
    rows = pa.Table.from_pylist([{"body": {"topics": [topic]}}], table_schema("MetadataResponse"))
    folder = root / "tables" / MESSAGE
    folder.mkdir()
    pq.write_table(rows, folder / "0.parquet", use_compliant_nested_type=not like_arrow)
    found = output(str(root))
    return OpenedOutput(cast("Any", None), found, cast("Any", None), lambda _: None)


@pytest.mark.parametrize("like_arrow", [False, True])
@pytest.mark.parametrize("code", [0, 3])
def test_a_value_in_lists_within_lists_is_seen(
    code: int, *, like_arrow: bool, tmp_path: Path
) -> None:
    found = opened(tmp_path, code, like_arrow=like_arrow)
    assert found.hold_only(MESSAGE, CODES, 0) is (code == 0)
    assert found.hold_only(MESSAGE, CODES[:1], 0)


def test_of_a_column_that_a_file_does_not_have_nothing_is_known(tmp_path: Path) -> None:
    found = opened(tmp_path, 0, like_arrow=False)
    assert not found.hold_only(MESSAGE, [*CODES, ("body", "no_such_column")], 0)


def test_a_question_that_is_asked_twice_reads_the_footers_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = opened(tmp_path, 3, like_arrow=False)
    assert found.hold_only(MESSAGE, CODES[:1], 0)
    monkeypatch.setattr(type(found.found), "dataset", None)
    assert found.hold_only(MESSAGE, CODES[:1], 0)
