"""Read captures and logs as lazy frames for Polars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.extras import needed_by
from flexwire.scan.captures import CaptureScan, capture_batches, to_paths
from flexwire.scan.columns import choose_columns
from flexwire.scan.logs import LogScan, log_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import polars as pl
    import pyarrow as pa

    from flexwire.scan.captures import CaptureRowKind

    Batches = Callable[[pa.Schema], Iterator[pa.RecordBatch]]


def scan_capture(
    paths: str | Path | Iterable[str | Path], rows: CaptureRowKind = "frames", **options: Any
) -> pl.LazyFrame:
    """Return the rows of captures as a lazy Polars frame.

    Paths, ``rows`` and options are the same as for `flexwire.scan.read_capture`. Captures are read
    when the frame is collected: only the columns that the query needs, and no more rows than it
    needs. Raises the errors of that function, and `MissingExtraError` if Polars is not installed.
    """
    scan = CaptureScan(rows=rows, **options)
    request = scan.request(to_paths(paths))
    return _lazy("scan_capture", scan.schema, lambda schema: capture_batches(scan, request, schema))


def scan_kafka_log(paths: str | Path | Iterable[str | Path], **options: Any) -> pl.LazyFrame:
    """Return the records in log segments as a lazy Polars frame.

    Paths and options are the same as for `flexwire.scan.read_kafka_log`. Logs are read when the
    frame is collected: only the columns that the query needs, and no more rows than it needs.
    Raises the errors of that function, and `MissingExtraError` if Polars is not installed.
    """
    scan, listed = LogScan(**options), to_paths(paths)
    # For a topic that does not exist, an error is raised here, before the frame is collected.
    log_batches(scan, listed, scan.schema)
    return _lazy("scan_kafka_log", scan.schema, lambda schema: log_batches(scan, listed, schema))


def _lazy(name: str, schema: pa.Schema, batches: Batches) -> pl.LazyFrame:
    """Return the rows of ``batches`` as a lazy frame with the columns of a schema."""
    with needed_by(f"flexwire.scan.{name}", "polars"):
        import polars as pl  # noqa: PLC0415 - an extra
        from polars.io.plugins import register_io_source  # noqa: PLC0415 - an extra

    def read(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,  # noqa: ARG001 - the size of a batch is fixed
    ) -> Iterator[pl.DataFrame]:
        left = n_rows
        for batch in batches(choose_columns(schema, with_columns)):
            frame = pl.DataFrame(batch)
            if left is not None:
                frame = frame.head(left)
                left -= len(frame)
            yield frame if predicate is None else frame.filter(predicate)
            if left == 0:
                return

    empty = pl.DataFrame(schema.empty_table())
    return register_io_source(read, schema=empty.schema)
