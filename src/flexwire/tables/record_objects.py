"""The rows of the records table that columns refuse: read into objects, batch by batch.

A row is a record, with the facts of its batch. There are two other kinds of row, both without an
offset: a batch that holds no records (compaction leaves such) with its facts; and bytes that are
not a record batch, with the reason in ``error``. The start of a batch that a full Fetch response
was cut off in is a row of the second kind too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.capture.columns.withheld import WITHHELD_BYTES
from flexwire.columnar.record_columns import OF_BATCH, OF_RECORD
from flexwire.errors import RecordError
from flexwire.records import RecordBatch, decode_batches
from flexwire.records.inflation import INFLATION, Inflation, records_within
from flexwire.tables.schema import RECORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    Row = tuple[Any, ...]

OF_PARTITION = RECORDS.names[RECORDS.names.index("offset") :]
"""The columns of the records table that the bytes of a partition give, in order."""
PARTIAL_BATCH = "partial batch"
WITHHELD_RECORDS = "the records are withheld: they are the cluster's metadata, credentials among it"
# A row's own weight, beside its key, value and record headers.
_ROW_BYTES = 100


def object_rows(
    data: bytes, begin: int = 0, inflation: Inflation = INFLATION
) -> Iterator[tuple[Row, int]]:
    """The rows of all batches in ``data``, as tuples of `OF_PARTITION`, and how large each is.

    ``data`` are a partition's bytes from ``begin`` on, which is where a batch begins. ``inflation``
    bounds what each batch inflates to.
    """
    if data == WITHHELD_BYTES and not begin:
        yield _row({"error": WITHHELD_RECORDS}), _ROW_BYTES
        return
    batches = decode_batches(data, max_inflated=inflation.max_inflated)
    while True:
        start = batches.position
        try:
            batch = next(batches, None)
        except RecordError as error:
            yield _failure(_located(error, begin), data[start : batches.position])
            continue
        if batch is None:
            break
        batch.position += begin
        yield from _batch_rows(batch, inflation.ratio)
    if batches.partial is not None:
        whole = batches.partial.declared_size or "an unknown number"
        reason = f"{PARTIAL_BATCH}: {batches.partial.size} of {whole} bytes"
        yield _failure(reason, data[batches.partial.position :])


def _located(error: RecordError, begin: int) -> str:
    return str(RecordError(error.reason, offset=begin + error.offset))


def _batch_rows(batch: RecordBatch, ratio: int | None) -> Iterator[tuple[Row, int]]:
    facts = _batch_facts(batch)
    try:
        records = records_within(batch, ratio)
    except RecordError as error:
        yield _failure(str(error), batch.data, facts)
        return
    if not records:
        yield _row(facts), _ROW_BYTES
    for record in records:
        own = {name: of(record) for name, of in OF_RECORD.items()}
        size = len(record.key or b"") + len(record.value or b"")
        size += sum(len(key) + len(value or b"") for key, value in record.headers)
        yield _row(facts | own), _ROW_BYTES + size


def _batch_facts(batch: RecordBatch) -> dict[str, Any]:
    facts = {name: of(batch) for name, of in OF_BATCH.items()}
    return facts | {"batch_records": batch.record_count}


def _failure(reason: str, data: bytes, facts: dict[str, Any] | None = None) -> tuple[Row, int]:
    return _row({**(facts or {}), "error": reason, "bytes": data}), _ROW_BYTES + len(data)


def _row(told: dict[str, Any]) -> Row:
    return tuple(told.get(name) for name in OF_PARTITION)
