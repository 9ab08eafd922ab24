"""The command tree, with its help and manual page, and the format of errors.

Exit codes: 0 success, 1 failure, 2 usage error, 100 findings.

The manual page is written to `docs/man`, from which the wheel installs it.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Final, NoReturn

import click

import flexwire
from flexwire.cli import (
    analyze,
    answers,
    call,
    capture_open,
    completion,
    conform,
    decode,
    demo,
    encode,
    explain,
    generate,
    mcp,
    records_dump,
    schema_bench,
    schema_breaking,
    schema_cost,
    schema_docs,
    schema_error_tags,
    schema_errors,
    schema_import,
    schema_lint,
    schema_list,
    schema_resolve,
    tables,
    tap,
    vectors,
    view,
    warmup,
    who,
)
from flexwire.cli.options import catalog_option
from flexwire.cli.terminal import guard_streams, system_error_text, tell, verbosity_options
from flexwire.errors import FlexwireError
from flexwire.extras import missing_extra
from flexwire.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator


EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "analyze": (
        "flexwire analyze captures --out analysis",
        "flexwire analyze kafka-request.log* --out analysis --release 4.0",
        "flexwire analyze /var/kafka/data --out analysis --answers storage",
    ),
    "answers": (
        "flexwire answers analysis",
        "flexwire answers analysis chargeback errors --labels teams.csv",
    ),
    "capture open": ("flexwire capture open tls.pcapng --keys secrets.log --out opened",),
    "conform": (
        "flexwire conform localhost:9092",
        "flexwire conform localhost:9092 --apis Metadata,Fetch --hostile --html conform.html",
        "flexwire conform localhost:9092 --against kafka:9092 --badge conform.svg",
        "flexwire conform broker:9093 --command-config client.properties --write --dry-run",
        "flexwire conform localhost:9092 --disposable",
    ),
    "demo": ("flexwire demo --out out/demo",),
    "encode": (
        """flexwire encode MetadataRequest '{"topics": null}' --version 4 --defaults""",
        "flexwire encode MetadataRequest request.json --version latest --as base64",
    ),
    "generate": (
        "flexwire generate FetchRequest --version 13 --count 1000 --seed 7 --format text",
        "flexwire generate MetadataResponse --version latest --hostile --count 500 --corpus corpus",
    ),
    "mcp": ("flexwire mcp /var/kafka/captures",),
    "records dump": (
        "flexwire records dump /var/kafka/data/orders-0 --deep",
        "flexwire records dump 00000000000000000000.log --offsets 100-120 --format json",
    ),
    "schema bench": (
        "flexwire schema bench main:specs specs",
        "flexwire schema bench release:4.3 release:4.4 --out bench.html",
    ),
    "schema breaking": (
        "flexwire schema breaking specs --against main:specs",
        "flexwire schema breaking specs --against release:4.0",
        "flexwire schema breaking --explain TAG_REUSED",
    ),
    "schema cost": (
        "flexwire schema cost captures --specs specs",
        "flexwire schema cost captures --encoding flexible --format csv",
    ),
    "schema docs": ("flexwire schema docs --out site",),
    "schema error-tags": ("flexwire schema error-tags release:4.4 --out specs",),
    "schema errors": ("flexwire schema errors 16", "flexwire schema errors COORDINATOR"),
    "schema import": ("flexwire schema import kafka-clients-4.4.0.jar --out catalog",),
    "schema lint": ("flexwire schema lint specs", "flexwire schema lint --explain ALL"),
    "schema list": (
        "flexwire schema list Fetch",
        "flexwire schema list --module metadata --release 4.0",
    ),
    "schema resolve": (
        "flexwire schema resolve FetchRequest --version 12",
        "flexwire schema resolve PingRequest --specs specs --version latest",
    ),
    "tap": (
        "flexwire tap --upstream localhost:9092 --out captures",
        "flexwire tap --upstream ssl://b1:9093 --listen ssl://localhost:9193 --throwaway-ca try",
    ),
    "tables compact": ("flexwire tables compact s3://bucket/kafka",),
    "tables retain": ("flexwire tables retain out --days 90 --dry-run",),
    "tables undo": ("flexwire tables undo out 20261122T101500Z-1a2b3c4d",),
    "tables vacuum": ("flexwire tables vacuum out",),
    "vectors check": (
        "flexwire vectors check --codec ./my-codec",
        "flexwire vectors check vectors --codec 'python my_codec.py' --case 'Fetch*'",
    ),
    "view": (
        "flexwire view capture.pcapng",
        "flexwire view capture.pcapng --only-api Fetch --only-client-id 'billing-*'",
    ),
    "warmup": ("flexwire warmup",),
    "who": (
        "flexwire who captures",
        "flexwire who captures --filter 'billing-*' --order-by waiting",
        "flexwire who capture.pcapng --once --format json",
    ),
}


def epilog(name: str) -> str | None:
    """Return the examples for a command in click's form. ``name`` excludes ``flexwire``."""
    if name not in EXAMPLES:
        return None
    return "\n".join(["\b", "Examples:", *(f"  {example}" for example in EXAMPLES[name])])


_SHOWN_AS_IS = "\b"


def manual_page(app: click.Group, version: str) -> str:
    """Return the manual page of a group with all its commands."""
    context = click.Context(app, info_name="flexwire", **app.context_settings)
    lines = [
        f'.TH FLEXWIRE 1 "" "flexwire {_escaped(version)}" "User commands"',
        ".nh",
        ".ad l",
        ".SH NAME",
        f"flexwire \\- {_escaped(_first(app))}",
        ".SH SYNOPSIS",
        *(
            f".B {_escaped(path)}\n{_escaped(' '.join(command.collect_usage_pieces(within)))}\n.br"
            for path, command, within in _leaves(app, context)
        ),
        ".SH DESCRIPTION",
        *_paragraphs(app.help or ""),
        *_options(app, context),
        ".SH COMMANDS",
    ]
    for path, command, within in _leaves(app, context):
        lines += [f".SS {_escaped(path)}", *_paragraphs(command.help or "")]
        lines += [*_options(command, within), *_paragraphs(command.epilog or "")]
    lines += [
        ".SH EXIT STATUS",
        *(
            f".TP\n.B {code}\n{meaning}"
            for code, meaning in (
                ("0", "clean"),
                ("1", "failed"),
                ("2", "usage"),
                ("100", "findings"),
            )
        ),
    ]
    return "\n".join(lines) + "\n"


def _leaves(
    group: click.Group, context: click.Context
) -> Iterator[tuple[str, click.Command, click.Context]]:
    for name, command in sorted(group.commands.items()):
        within = click.Context(command, context, name)
        if isinstance(command, click.Group):
            yield from _leaves(command, within)
        else:
            yield within.command_path, command, within


def _first(command: click.Command) -> str:
    return (command.help or "").partition("\n")[0].rstrip(".")


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text.

    Paragraphs that click does not wrap keep their line breaks.
    """
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        if paragraph.lstrip().startswith(_SHOWN_AS_IS):
            lines = paragraph.lstrip().removeprefix(_SHOWN_AS_IS).strip("\n").splitlines()
            yield "\n".join([".PP", ".nf", *map(_escaped, lines), ".fi"])
        elif paragraph:
            yield f".PP\n{_escaped(' '.join(paragraph.split()))}"


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None:
            yield f".TP\n.B {_escaped(record[0])}\n{_escaped(' '.join(record[1].split()))}"


def _escaped(text: str) -> str:
    r"""Return text escaped for roff: hyphens can be copied, and no line is a roff request.

    >>> print(_escaped(".log --all 'a'"))
    \&.log \-\-all \(aqa\(aq
    """
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return f"\\&{text}" if text.startswith(".") else text


@click.group(
    epilog="Exit codes: 0 success, 1 failure, 2 usage error, 100 findings.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@catalog_option
@verbosity_options
@click.version_option(flexwire.__version__, message="flexwire %(version)s")
def app() -> None:
    """Decode, check and measure Apache Kafka's wire protocol."""


@app.group()
def schema() -> None:
    """Work with message specs."""


@app.group()
def capture() -> None:
    """Work with captures."""


@app.group()
def records() -> None:
    """Work with brokers' log files."""


@app.group("tables")
def tables_group() -> None:
    """Maintain growing tables: compact, retain, undo, vacuum."""


@app.group("vectors")
def vectors_group() -> None:
    """Test a codec with test vectors from Apache Kafka."""


for command in (
    demo.demo,
    analyze.analyze,
    answers.answers,
    tap.tap,
    who.who,
    call.call,
    conform.conform,
    warmup.warmup,
    completion.completion,
    decode.decode,
    encode.encode,
    explain.explain,
    generate.generate,
    mcp.mcp,
    view.view,
):
    app.add_command(command)
schema.add_command(schema_list.schema_list)
schema.add_command(schema_resolve.schema_resolve)
schema.add_command(schema_import.schema_import)
schema.add_command(schema_docs.schema_docs)
schema.add_command(schema_lint.schema_lint)
schema.add_command(schema_bench.schema_bench)
schema.add_command(schema_breaking.schema_breaking)
schema.add_command(schema_cost.schema_cost)
schema.add_command(schema_error_tags.schema_error_tags)
schema.add_command(schema_errors.schema_errors)
capture.add_command(capture_open.capture_open)
records.add_command(records_dump.records_dump)
tables_group.add_command(tables.compact)
tables_group.add_command(tables.retain)
tables_group.add_command(tables.undo)
tables_group.add_command(tables.vacuum)
vectors_group.add_command(vectors.vectors_check)


def _every_command(group: click.Group, name: str = "") -> Iterator[tuple[str, click.Command]]:
    for last, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _every_command(command, f"{name}{last} ")
        else:
            yield f"{name}{last}", command


for full_name, command in _every_command(app):
    catalog_option(command)
    verbosity_options(command)
    command.epilog = epilog(full_name)


def run() -> None:
    """Run the command line and exit. Errors are printed as text, never as tracebacks."""
    guard_streams()
    if sys.stdout is None:
        fail("OSError: standard output is closed")
    try:
        try:
            # When click prints errors itself, it bypasses our streams if they are ASCII.
            code = app(prog_name="flexwire", standalone_mode=False)
        finally:
            sys.stdout.flush()
        sys.exit(code or 0)
    except click.ClickException as error:
        _on_one_line(error).show(file=sys.stderr)
        sys.exit(error.exit_code)
    except click.Abort:
        fail("Aborted!")
    except FlexwireError as error:
        fail(tell(error))
    except ModuleNotFoundError as error:
        missing = missing_extra("this command", error)
        if missing is None:
            raise
        fail(tell(missing))
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe. This is not a failure.
        sys.stdout = None
        sys.exit(1)
    except OSError as error:
        # Without this line, Python would try to write the rest at exit, and fail again.
        sys.stdout = None
        fail(f"OSError: {printable(system_error_text(error))}")


def _on_one_line(error: click.ClickException) -> click.ClickException:
    """Return the error with its message on one line, unless the message is a help page."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error
    message = error.format_message()
    if isinstance(error, click.MissingParameter):
        # Click prints choices on separate lines, indented with tabs.
        message = " ".join(message.split())
    message = printable(message)
    if isinstance(error, click.UsageError):
        return click.UsageError(message, error.ctx)
    return click.ClickException(message)


def fail(text: str) -> NoReturn:
    """Print an error and exit with code 1."""
    print(text, file=sys.stderr)
    sys.exit(1)
