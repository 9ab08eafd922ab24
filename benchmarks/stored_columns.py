"""Count what answers read from a store: ``python benchmarks/stored_columns.py OUT NAME...``.

A small S3 server on this machine serves the files of OUT, and counts the bytes and requests of the
bodies that it sends. Each answer runs as `flexwire answers s3://… NAME --no-sums` in a process of
its own. ``--src`` names the sources of another commit of flexwire to compare with. The figures
include Delta's logs and other small files.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from tests.storage.faulty_store import Store, serving


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--src", type=Path, default=Path(__file__).parents[1] / "src")
    given = parser.parse_args()
    store = Store()
    tables = 0
    for path in (one for one in given.out.rglob("*") if one.is_file()):
        tables += path.stat().st_size if path.suffix == ".parquet" else 0
        store.put(f"out/{path.relative_to(given.out)}", path.read_bytes())
    print(f"files of tables: {tables / 1e6:,.2f} MB")
    with serving(store) as bucket:
        for name in given.names:
            store.sent = 0
            store.asked.clear()
            command = [sys.executable, "-m", "flexwire", "answers", f"{bucket}/out", name]
            environment = {**os.environ, "PYTHONPATH": str(given.src)}
            subprocess.run(  # noqa: S603 - the command is our own
                [*command, "--no-sums", "--format", "csv"],
                env=environment, check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
            requests = sum(asked.is_body for asked in store.asked)
            print(f"{name}: {store.sent / 1e6:,.2f} MB in {requests:,} requests", flush=True)


if __name__ == "__main__":
    main()
