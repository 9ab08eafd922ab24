"""`flexwire vectors check`: test a codec in any language with vectors from Apache Kafka."""

from __future__ import annotations

import json
from pathlib import Path

import click

from flexwire.cli.check import FINDINGS
from flexwire.cli.options import Format, format_option
from flexwire.cli.terminal import print_line

_SECONDS = click.FloatRange(min=0, min_open=True, max=3600)


@click.command("check")
@click.argument(
    "package", required=False, type=click.Path(file_okay=False, path_type=Path), metavar="[PACKAGE]"
)
@click.option(
    "--codec",
    required=True,
    metavar="COMMAND",
    help=(
        "The command that starts the codec: a program with its arguments, quoted as for a shell. "
        "flexwire starts the program without a shell."
    ),
)
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="PATTERN",
    help="Run only cases whose name matches this pattern, such as 'Fetch*/13/*'. Can be given "
    "multiple times.",
)
@click.option("--decode-only", is_flag=True, help="Do not ask the codec to encode.")
@click.option(
    "--case-seconds",
    type=_SECONDS,
    default=5.0,
    show_default=True,
    help="The time limit for the codec on each case.",
)
@click.option(
    "--start-seconds",
    type=_SECONDS,
    default=60.0,
    show_default=True,
    help="The time limit for the first case after the codec has started.",
)
@click.option(
    "--starts",
    type=click.IntRange(1, 10_000),
    default=20,
    show_default=True,
    help=(
        "The maximum number of times to start the codec. flexwire restarts the codec after a crash "
        "or a timeout."
    ),
)
@click.option("--every-version", is_flag=True, help="Print a row for each version of a message.")
@format_option
def vectors_check(
    *,
    package: Path | None,
    codec: str,
    cases: tuple[str, ...],
    decode_only: bool,
    case_seconds: float,
    start_seconds: float,
    starts: int,
    every_version: bool,
    output: Format,
) -> None:
    """Test a codec in any language with test vectors from Apache Kafka.

    For each case, the codec reads a line of JSON from its standard input and writes a line to its
    standard output. The codec's line contains the message that it read (json), contains the bytes
    that it wrote (hex), or states that it refuses the bytes. docs/vectors.md describes the lines.
    PACKAGE is a directory of vectors. The default is the installed package flexwire-vectors.

    A codec must read every valid message and refuse all bytes that Apache Kafka refuses. If Apache
    Kafka accepts bytes that it would not write, a codec may accept or refuse these bytes. The
    command reports such a difference only as a remark. Exits with 100 if the codec deviates, or if
    some cases could not run.
    """
    import shlex
    from fnmatch import fnmatchcase

    from flexwire.vectors import CodecLimits, read_package, run_codec

    try:
        command = shlex.split(codec)
    except ValueError as error:
        raise click.UsageError(f"--codec: {error}") from None
    if not command:
        raise click.UsageError("--codec: give a program")
    limits = CodecLimits(case_seconds=case_seconds, start_seconds=start_seconds, starts=starts)
    found = read_package(package)
    chosen = (
        one
        for one in found.vectors()
        if not cases or any(fnmatchcase(one.case, pattern) for pattern in cases)
    )
    results = run_codec(
        command, chosen, limits=limits, encode=not decode_only, manifest=found.manifest
    )
    if not results.counts:
        raise click.UsageError(f"no case matches {' or '.join(cases)}")
    if output is Format.JSON:
        print(json.dumps(results.to_json(), ensure_ascii=False, indent=2))
    else:
        for line in results.text(every_version=every_version):
            print_line(line)
    if not results.is_clean:
        click.get_current_context().exit(FINDINGS)
