"""The directory of tables that an analysis writes: where each lies, and whose it is.

```
OUT/tables/frames/               one row a frame
OUT/tables/connections/          one row a connection, and whether it is Kafka
OUT/tables/messages/<Message>/   one row a request or response, decoded
OUT/tables/records/              one row a record of a Produce or a Fetch
OUT/tables/audit/                one row a client, release and what was found
OUT/tables/packets/              one row a capture file and reason why packets were not used
```
"""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexwire.errors import FlexwireError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame

# A frame may have 100 MiB, and a row between two of them a hundred bytes. Parquet's writer looks at
# the size of what it holds after 100 rows, and then as late as the rows before let it hope, up to
# 10,000: so a page or a row group may become gigabytes. Looked at after every row (for both), none
# is longer than its limit by more than one row.
_SIZES_CHECKED = {
    "parquet.page.size.row.check.min": "1",
    "parquet.page.size.row.check.max": "1",
    # A reader holds a row group of each of its files, compressed, and the default is 128 MiB.
    "parquet.block.size": str(32 * 1024 * 1024),
}
# Spark leaves names with an underscore before them alone.
MARKER = "_flexwire.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables below one directory."""

    root: Path

    @property
    def frames(self) -> Path:
        """Every frame: its header's facts, its size and latency, whether it decoded."""
        return self.root / "frames"

    @property
    def connections(self) -> Path:
        """Every connection: its ends, its bytes, how it ended, and whether it is Kafka."""
        return self.root / "connections"

    @property
    def records(self) -> Path:
        """Every record that was produced or fetched, with the facts of its batch."""
        return self.root / "records"

    @property
    def packets(self) -> Path:
        """The packets of each capture file, and how many were not used for which reason."""
        return self.root / "packets"

    @property
    def audit(self) -> Path:
        """What the audit found: one row a client, release and finding."""
        return self.root / "audit"

    @property
    def messages(self) -> Path:
        """The directory of the message tables."""
        return self.root / "messages"

    def message(self, name: str) -> Path:
        """The table of one message."""
        return self.messages / name

    def message_names(self) -> list[str]:
        """The messages that have a table, by name."""
        if not self.messages.is_dir():
            return []
        return sorted(one.name for one in self.messages.iterdir() if one.is_dir())


def begin_tables(out: Path) -> Tables:
    """An empty directory of tables below ``out``; the tables of an earlier analysis are deleted.

    Raises `FlexwireError` when there are files in it that flexwire did not write: it deletes
    nothing that is not its own.
    """
    root = out / "tables"
    if root.exists() and not (root / MARKER).is_file() and any(root.iterdir()):
        raise FlexwireError(
            f"{root} holds files that flexwire did not write; empty it, or choose another --out"
        )
    tables = Tables(root)
    written = (tables.frames, tables.connections, tables.records, tables.packets, tables.messages)
    for old in (*written, tables.audit):
        shutil.rmtree(old, ignore_errors=True)
    root.mkdir(parents=True, exist_ok=True)
    (root / MARKER).write_text(json.dumps({"format": FORMAT}) + "\n", encoding="utf-8")
    return tables


@contextmanager
def working_directory(out: Path) -> Iterator[Path]:
    """A new directory below ``out`` for what lies between two jobs, deleted in the end.

    It lies there and not among the machine's temporary files because every executor must see it.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="work-", dir=out) as name:
        yield out.__class__(name)


def write_table(rows: DataFrame, path: Path, *partitions: str) -> None:
    """Write a table as zstd-compressed Parquet, in bounded memory however long its values are."""
    writer = rows.write.options(**_SIZES_CHECKED)
    writer.parquet(str(path), partitionBy=list(partitions) or None, compression="zstd")
