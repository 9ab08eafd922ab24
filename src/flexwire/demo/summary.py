"""What the demo shows on the terminal when it is over."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from flexwire.demo.outcome import ClientOutcome
    from flexwire.demo.run import DemoOutcome
    from flexwire.report.facts import Facts


def print_summary(console: Console, outcome: DemoOutcome) -> None:
    """A short table of the clients, the counts of the analysis, and failures."""
    facts = outcome.analysis.facts
    console.print(_clients(outcome.traffic.clients, facts))
    totals = facts.totals
    console.print(
        f"{totals.frames:,} frames on {totals.connections:,} connections, {totals.bytes:,} bytes; "
        f"{totals.decode_failures:,} did not decode"
        + (f", {totals.lenient_frames:,} only leniently" if totals.lenient_frames else ""),
        highlight=False,
    )
    for count in facts.failure_counts:
        times = "once" if count.count == 1 else f"{count.count:,} times"
        console.print(Text(f"  {times}: {count.reason}", style="yellow"))
    for failure in outcome.failures:
        console.print(Text(f"failed: {failure}", style="bold red"))


def _clients(clients: tuple[ClientOutcome, ...], facts: Facts) -> Table:
    requests = Counter[str | None]()
    for seen in facts.clients:
        requests[seen.client.client_id] += seen.requests
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("Client", no_wrap=True)
    table.add_column("What it did", ratio=1)
    for heading in ("Written", "Read", "Requests", "Failures"):
        table.add_column(heading, justify="right")
    for one in clients:
        table.add_row(
            Text(one.client),
            Text(", ".join(filter(None, (one.version.partition(" ")[0], one.part))) or "—"),
            str(one.produced),
            str(one.consumed),
            str(sum(requests[client_id] for client_id in one.client_ids)),
            Text(str(len(one.failures)), style="bold red" if one.failures else ""),
        )
    return table
