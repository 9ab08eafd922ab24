"""The wall clock shows when something happened, but never how long it took, because it may be set.

Durations, time limits and ages come from `time.monotonic`, or from the clock of a single store.
Each place that reads the wall clock is listed here, with the reason why a jump is harmless.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import flexwire
from tests.house.test_process_changes import dotted, names

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(flexwire.__file__).parent
TIME = {
    f"time.{name}"
    for name in ["time", "time_ns", "gmtime", "localtime", "ctime", "asctime", "strftime"]
}
DATETIME = {
    f"datetime.{name}"
    for name in ["datetime.now", "datetime.utcnow", "datetime.today", "date.today"]
}
# Dates made from unchecked numbers, most of which are outside the years of a calendar.
CONVERTED = {
    f"datetime.{name}"
    for name in ["datetime.fromtimestamp", "datetime.utcfromtimestamp", "date.fromtimestamp"]
}
SPARK = {"current_timestamp", "current_date", "localtimestamp", "now"}
# Parsing all files takes seconds.
WORDS = ("import time\n", "from time import", "datetime", *sorted(SPARK - {"now"}))
LISTED = {
    "capture/files/pcapng.py: time.time_ns": "when a packet of the tap passed, as tcpdump says it",
    "cli/tables.py: datetime.datetime.now": "which days are too old is a matter of today",
    "survey/saved_stream.py: datetime.datetime.now": "what a killed stream left is an hour old",
    "cli/records_dump_text.py: datetime.datetime.fromtimestamp": "a number where no year fits",
    "tap/authority.py: datetime.datetime.now": "certificates hold from two days before on",
    "tap/relay.py: time.time_ns": "a frame of the tap says when it passed",
    "protocol/records_json.py: time.time_ns": "the timestamp of a record that gives none",
    "spark/analyze.py: time.time_ns": "the report says when it was made",
    "spark/archive.py: datetime.datetime.now": "a value of a trial, whatever it is",
    "spark/delta/grown.py: datetime.datetime.now": "sums are as old as their store says",
    "spark/delta/ledger.py: datetime.datetime.now": "`in_order` puts an entry after all before it",
    "spark/delta/logs.py: time.time": "Delta's protocol wants it; versions are the order",
    "spark/iceberg/files.py: time.time_ns": "snapshots are as old as their own times say",
    "spark/iceberg/upkeep.py: datetime.datetime.now": "files are as old as their store says",
    "spark/publishing/object_store.py: time.gmtime": "a name; `current.json` orders runs",
    "spark/publishing/object_store.py: time.strftime": "the same name",
    "storage/store_listing.py: datetime.datetime.fromtimestamp": "`moment_of` takes any number",
}


def asks(text: str) -> Iterator[str]:
    """Yield a file's calls that read the wall clock, or make a date from a number."""
    tree = ast.parse(text)
    imported = names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            found = dotted(node, imported)
            is_spark = found.startswith("pyspark.") and found.rpartition(".")[2] in SPARK
            if found in TIME | DATETIME | CONVERTED or is_spark:
                yield found


def test_every_use_of_the_clock_on_the_wall_is_listed() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}: {one}"
        for path, text in texts.items()
        if any(word in text for word in WORDS)
        for one in asks(text)
    }
    assert found == set(LISTED)


@pytest.mark.parametrize(
    "body",
    [
        "import time\nbegan = time.time()",
        "from time import time as now\nnow()",
        "import time\nclock = time.time_ns",
        "from datetime import datetime\ndatetime.now(UTC)",
        "import datetime as d\nd.datetime.fromtimestamp(mtime)",
        "from pyspark.sql import functions as F\nF.current_timestamp()",
    ],
)
def test_what_asks_is_seen(body: str) -> None:
    assert [*asks(body)]


def test_what_asks_another_clock_is_not() -> None:
    assert not [*asks("import time\ntime.monotonic()\ntime.perf_counter()\nloop.time()")]
