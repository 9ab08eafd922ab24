"""`flexwire demo`: capture and analyze the traffic of a small simulated cluster."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.options import Format, format_option, memory_option
from flexwire.cli.terminal import print_line, progress_bar, styled

if TYPE_CHECKING:
    from flexwire.demo.run import DemoOutcome


@click.command()
@click.option(
    "--out",
    default=Path("out/demo"),
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The output directory for all files of the demo.",
)
@memory_option
@format_option
def demo(*, out: Path, memory: str, output: Format) -> None:
    """Capture and analyze the traffic of a small cluster on this machine.

    Real clients send requests to three simulated brokers through the tap. Small programs act as old
    clients and send requests to an old broker. Then flexwire analyzes the captures, with an audit
    for Kafka 4.0.0 and the newest 4.0 release. The command writes capture/, tables/, facts.json,
    audit.csv, audit.json and report.html to OUT.
    """
    from flexwire.cli.analyze import print_audit
    from flexwire.extras import needed_by

    with needed_by("the demo", "demo"):
        from rich.console import Console

        from flexwire.demo.run import print_summary, run_demo

    with progress_bar() as progress:
        outcome = run_demo(out, progress=progress, memory=memory)
    if output is Format.JSON:
        print(json.dumps(_as_json(outcome), ensure_ascii=False, indent=2))
    else:
        print_summary(Console(file=styled(sys.stdout)), outcome)
        print_audit(outcome.analysis.facts)
        # A path that is split over two lines cannot be copied. Readers look for the path at the end
        # of the output.
        print_line(f"Report: {outcome.analysis.report}")
    if outcome.failures:
        sys.exit(1)


def _as_json(outcome: DemoOutcome) -> dict[str, Any]:
    from flexwire.cli.analyze import analysis_form

    clients = [
        {
            "client": client.client,
            "version": client.version,
            "part": client.part,
            "clientIds": list(client.client_ids),
            "produced": client.produced,
            "consumed": client.consumed,
            "failures": list(client.failures),
        }
        for client in outcome.traffic.clients
    ]
    analysis = analysis_form(outcome.analysis)
    return {"clients": clients, "failures": outcome.failures, "analysis": analysis}
