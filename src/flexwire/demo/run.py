"""Run the demo: first the clients, tap and embedded cluster, then the analysis and the report."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from rich.table import Table
from rich.text import Text

from flexwire.arguments import DEFAULT_MEMORY
from flexwire.demo.clients import CLIENTS, OLD_CLIENTS
from flexwire.demo.cluster import MockCluster
from flexwire.demo.content import TOPICS, require
from flexwire.demo.old_broker import run_old_broker
from flexwire.demo.outcome import ClientOutcome
from flexwire.spark.progress import silent
from flexwire.tap import Tap

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from flexwire.facts.facts import Facts
    from flexwire.spark.analyze import Analysis
    from flexwire.spark.progress import Progress
    from flexwire.tap import TapStatistics


_CLIENT_SECONDS = 180.0
_CAPTURE_PREFIX = "demo"
_REASON_LINES = 3
_STAGE = "Clients talk to the cluster"
_PLANTED_FAILURES = 1  # This frame is deliberately truncated.
# The releases of the demo's audit: the first release that removed versions, and its newest patch
# release. The patch release reads JoinGroup 0 and 1 again (KAFKA-19444).
RELEASES = ("4.0.0", "4.0")


@dataclass(frozen=True, slots=True)
class DemoTraffic:
    """The outcomes of the clients, the counts of each tap, and the capture files."""

    clients: tuple[ClientOutcome, ...]
    taps: tuple[TapStatistics, ...]
    captures: tuple[Path, ...]

    @property
    def failures(self) -> list[str]:
        """The failures by client, or an empty list if every client was successful."""
        wrong = {
            "connections closed by an internal error": sum(tap.failures for tap in self.taps),
            "frames that were not captured": sum(tap.capture_failures for tap in self.taps),
            "connections that were not fully captured": sum(
                tap.not_captured + tap.unended for tap in self.taps
            ),
            "responses whose addresses could not be replaced": sum(
                tap.undecodable for tap in self.taps
            ),
        }
        return [
            f"{client.client}: {what}" for client in self.clients for what in client.failures
        ] + [f"tap: {count} {what}" for what, count in wrong.items() if count]


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """The traffic of a demo and its analysis."""

    traffic: DemoTraffic
    analysis: Analysis

    @property
    def failures(self) -> list[str]:
        """The failures. The list is empty if only the deliberately damaged frame did not decode."""
        count = self.analysis.facts.totals.decode_failures
        if count == _PLANTED_FAILURES:
            return self.traffic.failures
        return [
            *self.traffic.failures,
            f"analysis: {count} frames did not decode, expected {_PLANTED_FAILURES}",
        ]


def run_demo(
    out: Path, *, progress: Progress = silent, memory: str = DEFAULT_MEMORY
) -> DemoOutcome:
    """Run the whole demo, and write its captures, tables and report to the directory ``out``.

    ``memory`` is the amount of Java memory for the analysis. A client's failure is recorded in the
    outcome, and the demo continues. Raises `FlexwireError` if the cluster, the tap or the analysis
    cannot run at all.
    """
    analyze = require("flexwire.spark.analyze").analyze
    traffic = record_traffic(out / "capture", progress=progress)
    analysis = analyze(
        traffic.captures,
        out,
        progress=progress,
        memory=memory,
        releases=RELEASES,
        answers="all",
    )
    return DemoOutcome(traffic, analysis)


def record_traffic(directory: Path, *, progress: Progress = silent) -> DemoTraffic:
    """Start the cluster and the tap, run every client, and stop both.

    A capture from an earlier demo, which is recognized by its file names, is removed from the
    directory.
    """
    for old in directory.glob(f"{_CAPTURE_PREFIX}-*.pcapng"):
        old.unlink()
    with MockCluster() as cluster:
        for topic, partitions in TOPICS.items():
            cluster.create_topic(topic, partitions)
        return asyncio.run(_record(cluster, directory, progress))


async def _record(cluster: MockCluster, directory: Path, progress: Progress) -> DemoTraffic:
    count = len(CLIENTS) + len(OLD_CLIENTS)
    progress(_STAGE, 0, count)
    here = ("127.0.0.1", 0)
    async with (
        run_old_broker() as old,
        Tap(here, cluster.addresses[0], directory, prefix=_CAPTURE_PREFIX) as tap,
        Tap(here, old, directory, prefix=f"{_CAPTURE_PREFIX}-old") as old_tap,
    ):
        done = 0

        async def one(name: str, bootstrap: str) -> ClientOutcome:
            nonlocal done
            outcome = await run_client(name, bootstrap)
            done += 1
            progress(_STAGE, done, count)
            return outcome

        clients = await asyncio.gather(
            *(one(name, str(tap.listen_address)) for name in CLIENTS),
            *(one(name, str(old_tap.listen_address)) for name in OLD_CLIENTS),
        )
        captures = [*tap.capture_paths, *old_tap.capture_paths]
    return DemoTraffic(tuple(clients), (tap.stats, old_tap.stats), tuple(captures))


async def run_client(
    name: str, bootstrap: str, *, seconds: float = _CLIENT_SECONDS
) -> ClientOutcome:
    """Run one client in its own process, so that it can be killed and its logs are separate.

    The client cannot make this function raise an error: a crash, a hang or unreadable output
    becomes a failure in the outcome, with the last lines of its standard error.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "flexwire.demo.clients",
        name,
        bootstrap,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(seconds):
            output, errors = await process.communicate()
    except TimeoutError:
        return _failed(name, f"did not finish within {seconds:g} seconds and was killed")
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        reason = " | ".join(errors.decode(errors="replace").splitlines()[-_REASON_LINES:])
        return _failed(name, f"ended with exit code {process.returncode}: {reason}")
    try:
        return msgspec.json.decode(output, type=ClientOutcome)
    except msgspec.DecodeError as error:
        return _failed(name, f"wrote no outcome: {error}")


def _failed(name: str, reason: str) -> ClientOutcome:
    return ClientOutcome(client=name, version="", failures=(reason,))


def print_summary(console: Console, outcome: DemoOutcome) -> None:
    """Print a short table of the clients, the analysis counts, and any failures."""
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
    for client in clients:
        table.add_row(
            Text(client.client),
            Text(", ".join(filter(None, (client.version.partition(" ")[0], client.part))) or "—"),
            str(client.produced),
            str(client.consumed),
            str(sum(requests[client_id] for client_id in client.client_ids)),
            Text(str(len(client.failures)), style="bold red" if client.failures else ""),
        )
    return table
