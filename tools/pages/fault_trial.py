"""docs/faults.md: the part about eight clients, from the rows that `make faults` kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.kafka.trial.fault_rows import RELEASE, FaultRow, read_fault_rows
from tools.pages.files import DOCS, write_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PAGE = DOCS / "faults.md"
_TITLE = "## What eight clients do\n"
_SUMMARY = """\
`make faults` runs the newest releases of eight client libraries against a {release} broker:
{clients}.
Each client creates a topic, produces five records, consumes them in a group and commits, with its
default settings. The tap applies one fault to each client. A step fails if the client reports an
error, or reports nothing within 30 seconds (90 seconds if the broker is silent). "Twice" counts how
many of the five records are in the topic more than once. If a client is not listed in a row, the
client never sent the affected request, or sent it only in versions in which the fault is not
possible.

In all {count} cases, the program terminated. The topic contained all records that the broker had
acknowledged, and only records that a client had sent. sarama does not accept tagged fields in
response headers, although KIP-482 requires it ([report](upstream/sarama-header-tags.md)).
"""


def files() -> dict[Path, str]:
    """Return the page with its part about clients rewritten."""
    return {PAGE: with_clients(PAGE.read_text(encoding="utf-8"), read_fault_rows())}


def with_clients(text: str, rows: Sequence[FaultRow]) -> str:
    """Return the page ``text`` with its part about clients rewritten from ``rows``."""
    before, _, after = text.partition(_TITLE)
    rest = after.partition("\n## ")
    return f"{before}{_section(rows)}{rest[1]}{rest[2]}"


def _section(rows: Sequence[FaultRow]) -> str:
    clients = dict.fromkeys(row.client for row in rows)
    summary = _SUMMARY.format(release=RELEASE, clients=", ".join(clients), count=len(rows))
    head = "| fault | all steps worked | failed, or twice |\n|---|---|---|\n"
    lines = []
    for fault in dict.fromkeys(row.fault for row in rows):
        done = [row for row in rows if row.fault == fault and row.done]
        good = [_library(row) for row in done if not _trouble(row)]
        bad = [f"{_library(row)}: {_trouble(row)}" for row in done if _trouble(row)]
        worked = "all" if len(good) == len(clients) else ", ".join(good)
        lines.append(f"| `{fault}` | {worked} | {'; '.join(bad)} |\n")
    return f"{_TITLE}\n{summary}\n{head}{''.join(lines)}"


def _library(row: FaultRow) -> str:
    return row.client.rpartition(" ")[0]


def _trouble(row: FaultRow) -> str:
    failed = [step for step, error in row.outcome.items() if error]
    twice = [f"{row.copies} twice"] if row.copies else []
    return ", ".join((*failed, *twice))


if __name__ == "__main__":
    write_files(files())
