"""Count what is read from a store: ``python benchmarks/stored_columns.py OUT NAME...``.

A small S3 server on this machine serves the files of OUT. It counts the bytes of the bodies that it
sends, and the requests for Parquet files, those of the ledger included. Each answer runs as
`flexwire answers s3://… NAME --no-sums` in a process of its own. With ``--columns``, the names are
those of tables: as tasks of Spark do, this process reads all their columns, and then these columns.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

sys.path.append(str(Path(__file__).parents[1]))

from flexwire.spark.dataframes import ParquetFilePart, output_of
from tests.storage.faulty_store import Store, serving


def answer(out: str, name: str) -> None:
    """Compute an answer in another process."""
    command = [sys.executable, "-m", "flexwire", "answers", out, name, "--no-sums"]
    command += ["--format", "csv"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own


def read(out: str, name: str, columns: list[str] | None) -> None:
    """Read columns of a table, or all."""
    output = output_of(out)
    schema = output.schema(name)
    if columns is not None:
        schema = pa.schema([schema.field(column) for column in columns])
    for file in output.files(name):
        for _ in ParquetFilePart(file.name, 0, 1).batches(output.root.url, schema):
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--columns", help="names of columns, with commas")
    given = parser.parse_args()
    store = Store()
    for path in (one for one in given.out.rglob("*") if one.is_file()):
        store.put(f"out/{path.relative_to(given.out)}", path.read_bytes())

    def show(what: str) -> None:
        tables = [one for one in store.asked if one.is_body and one.key.endswith(".parquet")]
        print(
            f"{what}: {store.sent / 1e6:,.2f} MB, {len(tables):,} requests for tables", flush=True
        )
        store.sent = 0
        store.asked.clear()

    with serving(store) as bucket:
        for name in given.names:
            if given.columns is None:
                answer(f"{bucket}/out", name)
                show(name)
                continue
            for columns in (None, given.columns.split(",")):
                read(f"{bucket}/out", name, columns)
                show(f"{name}, {'all columns' if columns is None else f'{len(columns)} columns'}")


if __name__ == "__main__":
    main()
