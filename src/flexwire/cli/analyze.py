"""`flexwire analyze`: captures to tables and a report, on Spark."""

from __future__ import annotations

from pathlib import Path

import click

from flexwire.cli.options import memory_option
from flexwire.cli.progress import progress_bar


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory for the tables and report.html.",
)
@click.option(
    "--release",
    "releases",
    multiple=True,
    metavar="RELEASE",
    help='The Kafka release to audit for, "4.0" for the newest 4.0; can be given several times. By '
    "default the newest of every major from the captured brokers' on.",
)
@memory_option
@click.option("--show-credentials", is_flag=True, help="Do not withhold SASL tokens and the like.")
def analyze(
    *,
    paths: tuple[Path, ...],
    out: Path,
    releases: tuple[str, ...],
    memory: str,
    show_credentials: bool,
) -> None:
    """Decode captures on Spark: tables and a report.

    PATHS are captures (pcap or pcapng, also gzipped) or directories of them. OUT gets tables/ with
    every frame, message and record as Parquet, facts.json, and report.html, which opens offline.
    Who breaks on which release is in the report, in audit.csv and in audit.json.
    """
    from flexwire.spark.analyze import analyze as run

    with progress_bar() as progress:
        done = run(
            paths,
            out,
            progress=progress,
            memory=memory,
            show_credentials=show_credentials,
            releases=releases,
        )
    totals = done.facts.totals
    print(
        f"{totals.frames:,} frames on {totals.connections:,} connections, {totals.bytes:,} bytes;"
        f" {totals.decode_failures:,} did not decode"
        + (f", {totals.lenient_frames:,} only leniently" if totals.lenient_frames else "")
    )
    print(f"Tables: {out / 'tables'}")
    print(f"Report: {done.report}")
