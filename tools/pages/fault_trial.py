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
`make faults` runs the newest releases of eight client libraries against a broker of {release}. Each
creates a topic, produces five records, consumes them in a group and commits, with the settings that
it has by default. The tap does one fault to each client. A cell names the steps that failed, and
how many records the topic has twice. A dot means that all steps worked; "not done" means that the
client never sent such a request, or only in versions in which the fault is not possible. A step
fails if the client reports an error, or nothing within 30 seconds (90 where the broker is silent).
In all {count} cases the program ended, no record was there that no client had sent, and none was
missing that the broker had acknowledged. sarama does not take tags in the header of a response, as
KIP-482 asks ([report](upstream/sarama-header-tags.md)).
"""


def files() -> dict[Path, str]:
    """Return the page with its part about clients written anew."""
    return {PAGE: with_clients(PAGE.read_text(encoding="utf-8"), read_fault_rows())}


def with_clients(text: str, rows: Sequence[FaultRow]) -> str:
    """Return the page ``text`` with its part about clients written from ``rows``."""
    before, _, after = text.partition(_TITLE)
    rest = after.partition("\n## ")
    return f"{before}{_section(rows)}{rest[1]}{rest[2]}"


def _section(rows: Sequence[FaultRow]) -> str:
    clients = list(dict.fromkeys(row.client for row in rows))
    by = {(row.fault, row.client): row for row in rows}
    summary = _SUMMARY.format(release=RELEASE, count=len(rows))
    head = f"| fault | {' | '.join(clients)} |\n|---|{'---|' * len(clients)}\n"
    lines = [
        f"| `{fault}` | {' | '.join(_cell(by[fault, client]) for client in clients)} |\n"
        for fault in dict.fromkeys(row.fault for row in rows)
    ]
    return f"{_TITLE}\n{summary}\n{head}{''.join(lines)}"


def _cell(row: FaultRow) -> str:
    if not row.done:
        return "not done"
    failed = [step for step, error in row.outcome.items() if error]
    said = [", ".join(failed)] if failed else []
    if row.copies:
        said.append(f"{row.copies} twice")
    return "; ".join(said) or "·"


if __name__ == "__main__":
    write_files(files())
