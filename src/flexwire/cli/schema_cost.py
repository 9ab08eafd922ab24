"""`flexwire schema cost`: measure how many bytes a change to specs, or an encoding, would save."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from flexwire.cli.options import ENCODINGS, InputError
from flexwire.cli.standard_input import capture_name, plain_name, spec_name, takes_standard_input
from flexwire.cli.terminal import write_data

if TYPE_CHECKING:
    from flexwire.schema.parse import Mode
    from flexwire.specs.cost.meter import ComparisonSide, CostMeter
    from flexwire.specs.cost.sides import SideSpecs

_NARROWEST = 80
_BUNDLED = "the bundled specs"


@click.command("cost")
@click.argument("captures", nargs=-1, metavar="[CAPTURE]...")
@click.option(
    "--vectors",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    multiple=True,
    help="Also measure the messages in this file, without headers. Each line has the form "
    '{"message": …, "version": …, "hex": …}; - reads standard input. Can be given multiple times.',
)
@click.option(
    "--specs",
    multiple=True,
    metavar="NEW",
    help="The specs to measure, in the notation of 'schema breaking'; by default, the specs of "
    "--against.",
)
@click.option(
    "--against",
    multiple=True,
    metavar="OLD",
    help="The specs to compare with; by default, all bundled specs. Can be given multiple times.",
)
@click.option(
    "--error-tags",
    is_flag=True,
    help="Compare OLD with a copy of OLD whose errors are tagged fields (KIP-636).",
)
@click.option("--encoding", type=click.Choice(ENCODINGS), help="The encoding after the change.")
@click.option(
    "--against-encoding", type=click.Choice(ENCODINGS), help="The encoding before the change."
)
@click.option(
    "--at",
    type=click.Choice(["sent", "newest", "upgrade"]),
    default="sent",
    show_default=True,
    help=(
        "Which versions to compare: the version of the captured message in both specs (sent), the "
        "newest version in each of the two specs (newest), or the version of the captured message "
        "before the change and the newest version after the change (upgrade)."
    ),
)
@click.option(
    "--specs-mode",
    "--mode",
    "mode",
    type=click.Choice(["strict", "legacy", "kip", "draft"]),
    default="strict",
    show_default=True,
    help="Which specs to accept, as in 'schema breaking'.",
)
@click.option("--all", "whole", is_flag=True, help="Print every line of each table.")
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json", "csv"]),
    default="text",
    show_default=True,
    help="The output format. Only JSON contains all results.",
)
@takes_standard_input(captures=capture_name, vectors=plain_name, specs=spec_name, against=spec_name)
def schema_cost(
    *,
    captures: tuple[str, ...],
    vectors: tuple[Path, ...],
    specs: tuple[str, ...],
    against: tuple[str, ...],
    error_tags: bool,
    encoding: str | None,
    against_encoding: str | None,
    at: str,
    mode: Mode,
    whole: bool,
    output: str,
) -> None:
    """Measure how many bytes a change to specs would save.

    The command encodes every message in the captures twice, once without the change and once with
    it. It then compares the sizes by message, version and field, and lists headers separately. Each
    run measures one change: other specs (--specs), errors as tagged fields (--error-tags), or
    another encoding (--encoding, --against-encoding).

    CAPTURE is a pcap or pcapng file, a directory of such files, a pattern, or - for standard input.
    The command counts, by reason, the messages that it cannot compare. Exits with 1 if no message
    was compared.
    """
    from flexwire.specs.cost import formats
    from flexwire.specs.cost.meter import CostMeter, VersionChoice

    if not captures and not vectors:
        raise click.UsageError("give a capture, or a file of messages with --vectors")
    if bool(specs) + error_tags + bool(encoding or against_encoding) != 1:
        raise click.UsageError(
            "give one change: --specs, --error-tags, or --encoding and --against-encoding"
        )
    old, new, names = _sides(
        specs, against, mode, encoding or "kafka", against_encoding or "kafka", tagged=error_tags
    )
    meter = CostMeter(old, new, VersionChoice(at))
    measure(meter, captures, vectors)
    if output == "json":
        question = {"old": names[0], "new": names[1], "at": at}
        print(formats.to_json(meter, question))
    elif output == "csv":
        write_data(formats.to_csv(meter))
    else:
        width = max(_NARROWEST, shutil.get_terminal_size().columns)
        title = f"{names[1]}, against {names[0]}; versions: {at}"
        print(formats.to_text(meter, title, width=width, whole=whole), end="")
    if not any(row.messages for row in meter.rows.values()):
        sys.stdout.flush()
        raise InputError("no message was compared")


def _sides(
    specs: tuple[str, ...],
    against: tuple[str, ...],
    mode: Mode,
    encoding: str,
    against_encoding: str,
    *,
    tagged: bool,
) -> tuple[ComparisonSide, ComparisonSide, tuple[str, str]]:
    """Return the old side, the new side, and the names of both."""
    from flexwire.specs.cost.meter import ComparisonSide
    from flexwire.specs.cost.sides import ErrorTaggedSpecs
    from flexwire.wire.encoding import Encoding

    old_specs = _specs(against, mode)
    new_specs, changed = old_specs, ", ".join(against) or _BUNDLED
    name = changed
    if specs:
        new_specs, changed = _specs(specs, mode), ", ".join(specs)
    elif tagged:
        new_specs, changed = ErrorTaggedSpecs(old_specs, mode), f"{name} with errors tagged"
    else:
        name, changed = f"{name} as {against_encoding}", f"{changed} as {encoding}"
    return (
        ComparisonSide(old_specs, Encoding(against_encoding)),
        ComparisonSide(new_specs, Encoding(encoding)),
        (name, changed),
    )


def _specs(paths: tuple[str, ...], mode: Mode) -> SideSpecs:
    from flexwire.schema.editions import read_editions
    from flexwire.specs.cost.sides import SideSpecs, bundled_specs

    return SideSpecs(read_editions(paths, mode)[0]) if paths else bundled_specs()


def measure(meter: CostMeter, captures: tuple[str, ...], vectors: tuple[Path, ...]) -> None:
    """Measure every message in captures and in files of vectors."""
    from flexwire.capture.messages import UnusedBytes, read_messages
    from flexwire.specs.cost.meter import SentMessage
    from flexwire.specs.cost.vectors import read_vectors

    for message in read_messages(_capture_paths(captures)):
        if isinstance(message, UnusedBytes):
            meter.leave_out(message.kind, message.reason, message.size)
        else:
            meter.add(
                SentMessage(
                    message.name,
                    message.api_key,
                    message.type,
                    message.version,
                    message.body,
                    message.header,
                )
            )
    for path in vectors:
        for sent in read_vectors(path):
            meter.add(sent)


def _capture_paths(captures: tuple[str, ...]) -> list[Path]:
    from flexwire.storage.file_search import capture_paths

    return capture_paths(captures)
