"""Record header strings and timestamp types are computed from the columns of records."""

from __future__ import annotations

import pyarrow as pa
import pytest

from flexwire.columnar.record_columns import RECORD_COLUMNS
from flexwire.logs.files import Partition
from flexwire.logs.records import KAFKA_COLUMNS, LogPiece, LogRows
from flexwire.records.record import TimestampType
from flexwire.storage.input_file import InputFile

PIECE = LogPiece(Partition("orders", 3), "/logs", InputFile("/logs/0.log", 9, "1/1"), 0, 9, True)
TYPES = {"NoTimestampType": -1, "CreateTime": 0, "LogAppendTime": 1}


def rows_of(name: str, source: str, values: list[object], skipped: int) -> list[object]:
    """Return a column that is made from values, without the first ``skipped`` ones."""
    rows = LogRows(pa.schema([(name, KAFKA_COLUMNS[name])]))
    assert rows.read == (source,)
    column = pa.array(values, RECORD_COLUMNS[source])
    batch = pa.RecordBatch.from_arrays([column], names=[source]).slice(skipped)
    made = rows.records(PIECE, batch)
    made.validate(full=True)
    found: list[object] = made.column(name).to_pylist()
    return found


@pytest.mark.parametrize("skipped", [0, 1, 2])
@pytest.mark.parametrize("last", list(TimestampType))
def test_types_of_timestamps_are_the_numbers_of_java(last: TimestampType, skipped: int) -> None:
    values: list[object] = [*TYPES, *TYPES, last.value]
    found = rows_of("timestampType", "timestamp_type", values, skipped)
    assert found == [TYPES[str(one)] for one in values[skipped:]]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (b"trace", "trace"),
        (b"\x7f", "\x7f"),
        (b"caf\xc3\xa9", "café"),
        (b"\x80", "\ufffd"),
        (b"a\xff", "a\ufffd"),
        (b"", ""),
    ],
)
def test_keys_of_record_headers_are_texts(key: bytes, text: str) -> None:
    values: list[object] = [[{"key": key, "value": None}], [], [{"key": b"a", "value": b"\xff"}]]
    expected = [[{"key": text, "value": None}], None, [{"key": "a", "value": b"\xff"}]]
    assert rows_of("headers", "headers", values, 0) == expected
