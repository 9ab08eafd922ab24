"""The directory of tables that an analysis writes, and Arrow batches of bounded size.

```
OUT/tables/frames/               one row a frame
OUT/tables/connections/          one row a connection, and whether it is Kafka
OUT/tables/messages/<Message>/   one row a request or response, decoded
OUT/tables/records/              one row a record of a Produce or a Fetch
OUT/tables/audit/                one row a client, release and what was found
OUT/tables/packets/              one row a capture file and reason why packets were not used
OUT/tables/log_*/                of log segments: `flexwire.tables.log_schema`
OUT/tables/_flexwire.json        says that the directory is flexwire's
OUT/tables/_SUCCESS              is there when all the others are: of which analysis they are
```
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.pandas.types import to_arrow_schema

import flexwire
from flexwire.errors import FlexwireError
from flexwire.facts.facts import SOURCES_SHOWN
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables.log_schema import LOG_TABLES
from flexwire.tables.output import MARKER, SUCCESS, TABLE_FILES, check_finished, table_files
from flexwire.tables.schema import GROWN_TABLES, REQUEST_LOG_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql.types import StructType


# PySpark 4.0 writes every time in this zone and accepts no other zone.
_ZONE: Final = "timezone"
_UTC: Final[dict[str, Any]] = (
    {_ZONE: "UTC"} if _ZONE in signature(to_arrow_schema).parameters else {}
)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the same schema as an Arrow schema, with times in UTC."""
    return to_arrow_schema(schema, **_UTC)


FORMAT = 3
TABLES = (
    *("frames", "connections", "records", "packets", "messages", "audit"),
    *(table.place for table in (*GROWN_TABLES, *REQUEST_LOG_TABLES, *LOG_TABLES)),
)


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables below one directory."""

    root: Path

    @property
    def frames(self) -> Path:
        """Every frame: the facts in its header, its size and latency, and whether it decoded."""
        return self.root / "frames"

    @property
    def connections(self) -> Path:
        """The table of connections: their endpoints, bytes and ends, and whether they are Kafka."""
        return self.root / "connections"

    @property
    def records(self) -> Path:
        """The table of records that were produced or fetched, with facts about their batches."""
        return self.root / "records"

    @property
    def packets(self) -> Path:
        """The table of packets in each capture file, with the unused packets by reason."""
        return self.root / "packets"

    @property
    def audit(self) -> Path:
        """The table of the audit's findings: one row for each client, release and finding."""
        return self.root / "audit"

    @property
    def messages(self) -> Path:
        """The directory of the message tables."""
        return self.root / "messages"

    def message(self, name: str) -> Path:
        """Return the table of one message."""
        return self.messages / name

    def message_names(self) -> list[str]:
        """Return the names of the messages for which there is a table."""
        if not self.messages.is_dir():
            return []
        return sorted(directory.name for directory in self.messages.iterdir() if directory.is_dir())


def finished_tables(root: Path) -> Tables:
    """Return the tables below a directory. Raises `FlexwireError` if they are not complete."""
    check_finished(OutputDirectory(str(root)))
    return Tables(root)


def mark(tables: Tables, sources: Iterable[str]) -> None:
    """Write the files that mark tables as complete, with the analysis that wrote them."""
    mark_place(OutputDirectory(str(tables.root)), sources)


def mark_place(tables: OutputDirectory, sources: Iterable[str]) -> None:
    """Mark the tables in a place as complete."""
    source_names = [*sources]
    description = {
        "format": FORMAT,
        "run": secrets.token_hex(8),
        "flexwire": flexwire.__version__,
        "files": len(source_names),
        # The table of packets lists all sources.
        "sources": source_names[:SOURCES_SHOWN],
        # With this number, a reader can notice that a listing is not complete.
        TABLE_FILES: dict(sorted(table_files(tables.entries("")).items())),
    }
    tables.write(MARKER, json.dumps({"format": FORMAT}).encode() + b"\n")
    tables.write(SUCCESS, json.dumps(description, indent=1).encode() + b"\n")


def check_ours(root: Path) -> None:
    """Raise `FlexwireError` if a directory of tables cannot be replaced.

    A directory cannot be replaced if it contains files that flexwire did not write, because
    flexwire deletes only its own files. A directory also cannot be replaced if its parent is on
    another file system, because a rename into the directory would fail.
    """
    if not root.exists():
        return
    if not (root / MARKER).is_file() and any(root.iterdir()):
        raise FlexwireError(
            f"{root} holds files that flexwire did not write; delete the files, or choose another "
            "--out"
        )
    if root.stat().st_dev != root.parent.stat().st_dev:
        raise FlexwireError(
            f"{root} and {root.parent} are on different file systems; choose another --out"
        )
