"""The report and the command describe logs, including logs in growing tables."""

from __future__ import annotations

from dataclasses import replace

from flexwire.cli.analyze import _log_summary
from flexwire.facts.facts import LogFacts
from flexwire.report import render
from tests.report.page import Page
from tests.report.sample import EMPTY

ONE = LogFacts(1, 1, 1, 1, 1, 1, 1, 1)
GROWN = LogFacts(
    topics=2, partitions=5, segments=3, bytes=2_000, batches=20, records=3_000,
    left_out_count=2, left_out=("/old/a-0", "/old/a-1"), known_partitions=3, waiting_bytes=61,
    gone_partitions=2, behind=("b-0",), behind_count=1,
)  # fmt: skip


def words(logs: LogFacts) -> str:
    return Page(render(replace(EMPTY, title="Kafka logs", logs=logs, source_files=0))).words()


def test_the_command_says_numbers_as_they_are_said() -> None:
    assert _log_summary(ONE) == "1 record in 1 batch of 1 partition, 1 byte; 1 place is damaged"
    assert _log_summary(GROWN) == (
        "3,000 records in 20 batches of 5 partitions, 2,000 bytes; 3 partitions had nothing new; "
        "2 partitions no longer contained the next offsets to read; "
        "1 partition ended before the next offset to read; "
        "2 directories were left out; the report lists the reasons"
    )


def test_the_report_says_how_tables_grew() -> None:
    told = words(GROWN)
    for one in (
        "3 partitions contain no new batches.",
        "61 B after the last complete batches were left for the next analysis",
        "2 partitions begin after the next offset to read",
        "1 partition ends before the next offset to read, so nothing was read from it",
        "b-0",
    ):
        assert one in told
    for one in ("no new batches", "were left for the next", "next offset to read"):
        assert one not in words(ONE)
