"""The rows for pieces of logs: records, or sums of records."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexwire.logs.records import BatchDamage, LogRows, LogSums, damaged_row, read_piece
from flexwire.records.inflation import INFLATION, Inflation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from flexwire.columnar.records import Mode
    from flexwire.logs.records import LogPiece

_LOGGER = logging.getLogger("flexwire")


@dataclass(frozen=True, slots=True)
class RowOptions:
    """The options for making rows from logs.

    ``groups`` contains the columns by which records are counted. Without groups, each row is a
    record. ``mode`` determines what happens with damaged bytes: "PERMISSIVE" creates a row,
    "FAILFAST" raises an error. Damaged bytes that a broker would also remove are only logged.
    ``tells_torn`` is true if a batch that is cut off at the end of a log is also logged.
    """

    mode: Mode = "FAILFAST"
    groups: tuple[str, ...] = ()
    inflation: Inflation = INFLATION
    tells_torn: bool = True


def read_rows(
    pieces: Iterable[LogPiece], schema: pa.Schema, options: RowOptions
) -> Iterator[pa.RecordBatch]:
    """Yield the rows for pieces, with the columns of a schema, as `flexwire.logs.records` does."""
    rows, sums = LogRows(schema), None
    if options.groups:
        sums = LogSums(schema, options.groups)
    for piece in pieces:
        counted = None if sums is None else sums.counted
        columns, bounds = (sums or rows).read, options.inflation
        for result in read_piece(piece, columns, mode=options.mode, sums=counted, inflation=bounds):
            if not isinstance(result, BatchDamage):
                if sums is None:
                    yield rows.records(piece, result)
                    continue
                sums.add(result)
                if sums.is_full:
                    yield sums.take(piece)
            elif result.is_torn and not options.tells_torn:
                continue
            elif options.mode == "PERMISSIVE":
                yield damaged_row(schema, piece, result)
            else:
                where = f"{piece.log.name}, byte {result.position}"
                _LOGGER.warning("%s: skipped, as a broker would do: %s", where, result.reason)
        if sums is not None:
            yield sums.take(piece)
