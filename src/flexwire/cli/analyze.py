"""`flexwire analyze`: convert captures and logs to tables and a report, on Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import click

from flexwire.arguments import DELTA, ICEBERG, PARQUET
from flexwire.cli.options import (
    Format,
    batch_mib_option,
    labels_option,
    master_option,
    memory_option,
    timezone_option,
    worker_memory_option,
)
from flexwire.cli.standard_input import input_name, plain_name, takes_standard_input
from flexwire.cli.terminal import note, print_line, progress_bar
from flexwire.printable import printable

if TYPE_CHECKING:
    from flexwire.answers.state.log import Moment
    from flexwire.facts.facts import Facts, LogFacts, RequestLogFacts
    from flexwire.spark.analyze import Analysis
    from flexwire.spark.publishing.catalogs import IcebergCatalog


_TABLES: Final = (PARQUET, DELTA, ICEBERG)


def _ends(
    context: click.Context, option: click.Parameter, brokers: tuple[str, ...]
) -> tuple[str, ...]:
    if not brokers:
        return ()
    from flexwire.capture.reassembly.connections import parse_end
    from flexwire.errors import CaptureError

    try:
        return tuple(map(parse_end, brokers))
    except CaptureError as error:
        raise click.BadParameter(error.reason, context, option) from None


def _moment(
    context: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> Moment | None:
    if not texts:
        return None
    from flexwire.answers.state.log import parse_moment
    from flexwire.errors import ArgumentError

    try:
        return parse_moment(texts)
    except ArgumentError as error:
        raise click.BadParameter(str(error), context, option) from None


def _properties(
    context: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    properties = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"expected NAME=VALUE, got {text!r}", context, option)
        properties[name] = value
    return properties


@click.command()
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "--out",
    required=True,
    metavar="OUT",
    help="The output directory for the tables and report.html: a local path, or an s3://, gs:// or "
    "abfs:// URL.",
)
@click.option(
    "--tables",
    type=click.Choice(_TABLES),
    default=PARQUET,
    show_default=True,
    help="The table format: parquet (the next analysis replaces the tables), or delta or iceberg "
    "(--append adds rows to the tables).",
)
@click.option(
    "--format",
    "output",
    type=click.Choice([*Format, PARQUET, DELTA], case_sensitive=False),
    metavar="[text|json]",
    default=Format.TEXT,
    show_default="text",
    help="The format of the summary printed at the end.",
)
@click.option(
    "--append",
    is_flag=True,
    help=(
        "With --tables delta or iceberg: add rows to the tables in OUT. Input that these tables "
        "already contain is not added again."
    ),
)
@click.option(
    "--iceberg-catalog",
    metavar="CATALOG.DATABASE",
    help="With --tables iceberg: a catalog from pyiceberg's configuration, and a database in "
    "that catalog. By default, the catalog is a file in OUT.",
)
@click.option(
    "--iceberg-property",
    "iceberg_properties",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_properties,
    help="With --iceberg-catalog: a property for pyiceberg, such as uri=https://catalog:8181. "
    "Can be given multiple times. Keys and passwords belong in pyiceberg's configuration.",
)
@click.option(
    "--register",
    metavar="CATALOG.DATABASE",
    help=(
        "Register the Parquet or Delta tables as external tables in a Spark catalog, such as "
        "spark_catalog.kafka."
    ),
)
@click.option(
    "--release",
    "releases",
    multiple=True,
    metavar="RELEASE",
    help='The Kafka release to audit against; "4.0" means the newest 4.0 release. Can be given '
    "multiple times. The default is the newest release of each major version, beginning with the "
    "major version of the captured brokers.",
)
@click.option(
    "--captured-release",
    metavar="RELEASE",
    help=(
        "The release of the captured brokers, if known. A few releases changed the layout of a "
        "message version but kept its number. For such a version, flexwire uses the layout of this "
        "release."
    ),
)
@master_option
@memory_option
@worker_memory_option
@click.option(
    "--port",
    "ports",
    type=click.IntRange(1, 65535),
    multiple=True,
    help="A port on which brokers listen, on any host. Can be given multiple times.",
)
@click.option(
    "--broker",
    "brokers",
    metavar="ADDRESS:PORT",
    multiple=True,
    callback=_ends,
    help="A broker's address and port, such as 10.0.0.1:9092 or [::1]:9092. Can be given multiple "
    "times.",
)
@click.option(
    "--show-credentials", is_flag=True, help=("Do not withhold SASL tokens or other credentials.")
)
@click.option(
    "--record-bytes",
    is_flag=True,
    help=(
        "Also write the bytes of records to the message tables. By default, only the records table "
        "contains these bytes."
    ),
)
@click.option(
    "--answers",
    metavar="NAMES",
    help='The answers to compute: "all", "none", or comma-separated names. docs/answers.md lists '
    "the names. By default, flexwire computes the answers about logs, if the input contains logs.",
)
@labels_option
@timezone_option
@click.option(
    "--as-of",
    metavar="MOMENT",
    multiple=True,
    callback=_moment,
    help=(
        "For logs of internal topics: show groups, transactions and the cluster as they were at "
        "MOMENT. The default is the end of the logs. MOMENT is a time (2026-11-22T10:00Z), "
        "or, for an internal topic, TOPIC-PARTITION=OFFSET. The second form can be given multiple "
        "times."
    ),
)
@click.option(
    "--keys",
    "keys",
    metavar="FILE",
    multiple=True,
    help='A key log with the secrets of the TLS connections in the captures, or "embedded" if the '
    "pcapng files contain the secrets. Can be given multiple times.",
)
@batch_mib_option
@click.option(
    "--max-ratio",
    type=click.IntRange(min=1),
    help=(
        "The largest allowed ratio of decompressed record-batch bytes to captured bytes; by "
        "default 1024. If all batches together exceed this ratio, flexwire omits and counts each "
        "batch that itself exceeds it."
    ),
)
@click.option(
    "--range-mib",
    "range_bytes",
    type=click.IntRange(min=32),
    callback=lambda _context, _option, value: None if value is None else value << 20,
    help=(
        "How many MiB of captures each task decodes (range_bytes). By default, flexwire chooses "
        "this size based on the number of tasks that Spark can run at once. On a cluster, the size "
        "is at most 512 MiB. Set this option if the number of executors changes during the run."
    ),
)
@click.option(
    "--skip-unreadable",
    is_flag=True,
    help=(
        "Skip files that cannot be opened or are not captures. The report lists these files. By "
        "default, such a file causes the analysis to fail."
    ),
)
@takes_standard_input(paths=input_name, keys=plain_name, labels=plain_name)
def analyze(
    *,
    paths: tuple[str, ...],
    out: str,
    tables: str,
    output: Format | str,
    append: bool,
    answers: str | None,
    **others: Any,
) -> None:
    """Decode captures and logs on Spark, and write tables and a report.

    PATHS are captures (pcap or pcapng, optionally gzipped), broker log segments, and broker request
    logs (kafka-request.log*, or container logs in JSON or CRI format, optionally gzipped). A path
    can also be a directory of these (a broker's log.dirs, or one partition's directory), a pattern,
    or - for standard input. PATHS can be local or in an object store (s3://bucket/captures/ or
    'gs://bucket/*.pcapng'). docs/request-logs.md lists the data missing from request logs.

    OUT contains tables/, facts.json and report.html. tables/ contains every connection, frame,
    message, record, and log batch, stored as Parquet. report.html works offline. The report,
    audit.csv and audit.json list which clients break on which releases. The report, tables/answers/
    and answers/ (as CSV) contain the answers.

    On a cluster, flexwire must be installed on all machines, and the captures and OUT must be
    available under the same paths on all of them. docs/cluster.md describes the setup.

    With --port or --broker, only connections to these ports or brokers count as Kafka. Otherwise, a
    connection counts as Kafka if some bytes decode as Kafka. Other connections are only listed.

    A finished analysis replaces all earlier output in OUT. If an analysis fails, the earlier output
    remains unchanged. tables/_SUCCESS exists once the tables are complete. A local output is
    readable only by you. In an object store, OUT/current.json contains the output's current path.

    With --append, each analysis adds its rows to the Delta or Iceberg tables in OUT, exactly once.
    OUT/ledger lists all analyses. Each report in OUT/runs covers only the input of its analysis.
    """
    tables, output = _formats(tables, output, others["releases"], append=append)
    others["iceberg_catalog"] = _catalog(tables, others)
    from flexwire.answers.asking.results import parse_names
    from flexwire.errors import AnalysisError
    from flexwire.spark.analyze import analyze as run

    with progress_bar() as progress:
        analysis = run(
            paths,
            out,
            format=tables,
            append=append,
            answers=None if answers is None else parse_names(answers),
            progress=progress,
            # Each name is a parameter of `run`. None means that the option was not given.
            **{name: value for name, value in others.items() if value is not None},
        )
    if output is Format.JSON:
        _print_form(analysis)
    else:
        _print_summary(analysis, out)
    if answers is not None and analysis.facts.unanswered:
        # The user requested these answers. A failed default answer is mentioned only in the report.
        raise AnalysisError(f"{len(analysis.facts.unanswered)} of the requested answers failed")


def _formats(
    tables: str, output: Format | str, releases: tuple[str, ...], *, append: bool
) -> tuple[str, Format]:
    """Return the format of the tables and the format of the summary.

    In earlier releases, --format chose the format of tables. Prints the full names of releases that
    were given in short form.
    """
    from flexwire.schema.catalog import catalog

    for release in releases:
        if (exact := catalog().release(release)) != release:
            note(f"--release {release} is {exact}, the newest such release in the catalog")
    if not isinstance(output, Format):
        note(f"--format {output} is now called --tables {output}; the old name still works")
        tables, output = output, Format.TEXT
    if append and tables == PARQUET:
        raise click.UsageError(
            "--append adds rows to Delta or Iceberg tables; also use --tables delta or --tables "
            "iceberg (each analysis replaces Parquet tables as a whole)"
        )
    return tables, output


def _catalog(tables: str, others: dict[str, Any]) -> IcebergCatalog | None:
    """Return the catalog for Iceberg tables.

    Raise a usage error if catalog options are given and the tables are not Iceberg tables.
    """
    name, properties = others["iceberg_catalog"], others.pop("iceberg_properties")
    if tables != ICEBERG and (name or properties):
        option = "--iceberg-catalog" if name else "--iceberg-property"
        raise click.UsageError(f"{option} is for Iceberg tables; also use --tables iceberg")
    if properties and not name:
        raise click.UsageError(
            "--iceberg-property requires --iceberg-catalog, which specifies the catalog"
        )
    if tables == ICEBERG and others["register"]:
        raise click.UsageError(
            "--register is for Parquet and Delta tables; Iceberg tables are in their own catalog"
        )
    if not name:
        return None
    from flexwire.spark.publishing.catalogs import IcebergCatalog

    return IcebergCatalog(name, properties)


def _print_form(analysis: Analysis) -> None:
    print(json.dumps(analysis_form(analysis), ensure_ascii=False, indent=2))


def _print_summary(analysis: Analysis, out: str) -> None:
    from flexwire.facts.units import plural

    if not analysis.is_new:
        print("The tables already contain this input, so nothing was added. Its report says:")
    connections = analysis.facts.connections
    totals = analysis.facts.totals
    if analysis.facts.logs is not None:
        print(_log_summary(analysis.facts.logs))
    if analysis.facts.request_logs is not None:
        print(_request_log_summary(analysis.facts.request_logs))
    if not analysis.facts.has_traffic:
        _print_notes(analysis)
        _print_places(analysis, out)
        return
    size = "" if analysis.facts.request_logs is not None else f", {plural(totals.bytes, 'byte')}"
    print(
        f"{plural(totals.frames, 'frame')} on {plural(totals.connections, 'connection')}{size};"
        f" {totals.decode_failures:,} did not decode"
        + (f", {totals.lenient_frames:,} only leniently" if totals.lenient_frames else "")
    )
    if connections.not_kafka:
        are = "connection is" if connections.not_kafka == 1 else "connections are"
        size = plural(connections.not_kafka_bytes, "byte")
        print(f"{connections.not_kafka:,} {are} not Kafka, {size}")
    if totals.batches_beyond_bounds:
        print(_beyond_bounds(totals.batches_beyond_bounds))
    if totals.skipped_packets:
        skipped = plural(totals.skipped_packets, "packet")
        print(f"{skipped} skipped: not TCP, or not readable; the packets table lists the reasons")
    if analysis.facts.unreadable_files:
        print_line(_left_out(analysis.facts))
    _print_notes(analysis)
    print_audit(analysis.facts)
    _print_places(analysis, out)


def _beyond_bounds(batches: int) -> str:
    subject = "1 record batch inflates" if batches == 1 else f"{batches:,} record batches inflate"
    return (
        f"{subject} beyond a limit, so the records inside were not read; raise --batch-mib or "
        "--max-ratio"
    )


def _print_notes(analysis: Analysis) -> None:
    for note_text in analysis.notes:
        print_line(note_text)


def _log_summary(logs: LogFacts) -> str:
    from flexwire.facts.units import plural

    records, batches = plural(logs.records, "record"), plural(logs.batches, "batch", "batches")
    of, size = plural(logs.partitions, "partition"), plural(logs.bytes, "byte")
    parts = [f"{records} in {batches} of {of}, {size}"]
    if logs.damaged:
        places = plural(logs.damaged, "place")
        parts.append(f"{places} {'is' if logs.damaged == 1 else 'are'} damaged")
    if logs.beyond_bounds:
        holds = (
            "1 of these places contains"
            if logs.beyond_bounds == 1
            else f"{logs.beyond_bounds:,} of these places contain"
        )
        parts.append(
            f"{holds} batches that were not read, because they inflate beyond a limit; raise "
            "--batch-mib or --max-ratio"
        )
    if logs.known_partitions:
        parts.append(f"{plural(logs.known_partitions, 'partition')} had nothing new")
    if logs.gone_partitions:
        parts.append(
            f"{plural(logs.gone_partitions, 'partition')} no longer contained the next offsets "
            "to read"
        )
    if logs.behind_count:
        parts.append(
            f"{plural(logs.behind_count, 'partition')} ended before the next offset to read"
        )
    if logs.left_out_count:
        directories = plural(logs.left_out_count, "directory", "directories")
        was = "was" if logs.left_out_count == 1 else "were"
        parts.append(f"{directories} {was} left out; the report lists the reasons")
    return "; ".join(parts)


def _request_log_summary(logs: RequestLogFacts) -> str:
    from flexwire.facts.units import plural

    counts = [
        (logs.forwarded, "forwarded to the controller, and therefore not counted"),
        (logs.refused, "refused, according to the brokers' own logs"),
        (logs.cut, "cut off after the header"),
        (logs.text, "in the old text format, which may not show all fields of the request"),
        (logs.unused, "lines not used; the packets table lists the reasons"),
    ]
    counts_text = "".join(f"; {count:,} {description}" for count, description in counts if count)
    only = (
        "; the log level was INFO, at which brokers log only requests with a deprecated version"
    ) * logs.only_deprecated
    if logs.is_empty:
        only += (
            "; this says nothing about clients: at level INFO, brokers before 3.9.1 log no requests"
        )
    counted = f"{plural(logs.requests, 'request')} in {plural(logs.lines, 'line')} of request logs"
    return f"{counted}{counts_text}{only}"


def _print_places(analysis: Analysis, out: str) -> None:
    from flexwire.storage.output_directory import OutputDirectory

    print_line(f"Tables: {analysis.output.where('tables')}")
    print_line(f"Report: {analysis.output.where('report.html')}")
    if not (analysis.facts.answers or analysis.facts.unanswered):
        # The path is OUT, not the directory of this run. The directory of a run contains no Delta
        # tables, and in an object store it is removed later.
        command = f"flexwire answers {OutputDirectory(out)}"
        print_line(f"For chargeback, latency, errors and more, run: {command}")


def _left_out(facts: Facts) -> str:
    first = facts.unreadable[0]
    subject = (
        "1 file was" if facts.unreadable_files == 1 else f"{facts.unreadable_files:,} files were"
    )
    more = "" if facts.unreadable_files == 1 else "; the report lists the others"
    return f"{subject} left out as unreadable: {first.source}: {first.reason}{more}"


def analysis_form(analysis: Analysis) -> dict[str, Any]:
    """Return the JSON form of an analysis.

    ``isNew`` is false if the tables already contained the whole input.

    If there is no traffic, for example in an analysis of logs alone, the fields about traffic are
    null. ``bytes`` is null if the input includes request logs, which do not contain sizes. The file
    ``facts`` contains all facts.
    """
    facts = analysis.facts
    return {
        "isNew": analysis.is_new,
        "tables": analysis.output.where("tables"),
        "report": analysis.output.where("report.html"),
        "facts": analysis.output.where("facts.json"),
        "traffic": _traffic(facts) if facts.has_traffic else None,
        "logs": None if facts.logs is None else _logs(facts.logs),
        "requestLogs": None if facts.request_logs is None else _request_logs(facts.request_logs),
        "unreadableFiles": facts.unreadable_files,
        "audit": audit_form(facts) if facts.has_traffic else [],
        "unanswered": [
            {"name": question.name, "reason": question.reason} for question in facts.unanswered
        ],
        "notes": list(analysis.notes),
    }


def _traffic(facts: Facts) -> dict[str, Any]:
    totals = facts.totals
    return {
        "frames": totals.frames,
        "connections": totals.connections,
        "bytes": None if facts.request_logs is not None else totals.bytes,
        "decodeFailures": totals.decode_failures,
        "lenientFrames": totals.lenient_frames,
        "batchesBeyondBounds": totals.batches_beyond_bounds,
        "notKafkaConnections": facts.connections.not_kafka,
        "notKafkaBytes": facts.connections.not_kafka_bytes,
    }


def _logs(logs: LogFacts) -> dict[str, Any]:
    return {
        "partitions": logs.partitions,
        "batches": logs.batches,
        "records": logs.records,
        "bytes": logs.bytes,
        "damagedPlaces": logs.damaged,
        "placesBeyondBounds": logs.beyond_bounds,
        "knownPartitions": logs.known_partitions,
        "gonePartitions": logs.gone_partitions,
        "behindPartitions": logs.behind_count,
        "leftOutDirectories": logs.left_out_count,
    }


def _request_logs(logs: RequestLogFacts) -> dict[str, Any]:
    return {
        "lines": logs.lines,
        "requests": logs.requests,
        "forwarded": logs.forwarded,
        "refused": logs.refused,
        "cut": logs.cut,
        "text": logs.text,
        "unused": logs.unused,
        "onlyDeprecated": logs.only_deprecated,
    }


def audit_form(facts: Facts) -> list[dict[str, Any]]:
    """Return the audit's sentences about each release, with the most serious sentence first."""
    from flexwire.report.audit import sentences
    from flexwire.report.cluster import cluster_sentences

    return [
        {
            "release": release,
            "says": [{"verdict": verdict, "sentence": sentence} for verdict, sentence in verdicts],
            "cluster": [
                {"verdict": verdict, "sentence": sentence}
                for verdict, sentence in cluster_sentences(facts.audit, release)
            ],
        }
        for release, verdicts in sentences(facts)
    ]


def print_audit(facts: Facts) -> None:
    """Print the audit's sentences about each release, with the most serious sentence first."""
    from flexwire.report.audit import sentences
    from flexwire.report.cluster import cluster_sentences

    for release, verdicts in sentences(facts):
        print(f"Kafka {printable(release)}:")
        for _, sentence in (*verdicts, *cluster_sentences(facts.audit, release)):
            # Client ids and topics may contain anything, even control characters.
            print(f"  {printable(sentence)}")
