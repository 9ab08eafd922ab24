"""`flexwire schema bench`: show a change to message specs, with everything a reviewer needs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.check import FINDINGS
from flexwire.cli.options import Format, read_mode_option
from flexwire.cli.schema_cost import measure
from flexwire.cli.standard_input import capture_name, spec_name, takes_standard_input
from flexwire.cli.terminal import note, write_data

if TYPE_CHECKING:
    from flexwire.schema.parse import Mode
    from flexwire.specs.cost.meter import CostMeter

_WIDTH = 100


@click.command("bench")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option(
    "--capture",
    "captures",
    multiple=True,
    metavar="CAPTURE",
    help="Also measure how many bytes the change costs or saves on a capture. Can be given "
    "multiple times.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write an HTML page, which additionally contains the bytes of each message and test "
    "vectors.",
)
@read_mode_option
@click.option(
    "--format",
    "output",
    type=click.Choice(Format, case_sensitive=False),
    default=Format.TEXT,
    show_default="text",
    help="The output format; text is Markdown.",
)
@takes_standard_input(old=spec_name, new=spec_name, captures=capture_name)
def schema_bench(
    *,
    old: str,
    new: str,
    captures: tuple[str, ...],
    out: Path | None,
    specs_mode: Mode,
    output: Format,
) -> None:
    """Review a change to message specs on one page.

    The page lists what the change breaks compared with OLD and with each release, new lint
    findings, and the changes in each version. It also lists header versions, the bytes of each
    changed message before and after the change, and test vectors.

    OLD and NEW are each a file, a directory, a jar (kafka-clients contains the specs of its
    release), REV:PATH (a path in a git revision), release:NAME (a release in the bundled catalog),
    or - for standard input. Exits with 100 if the change breaks something.
    """
    from flexwire.specs.bench import compare_specs, formats

    comparison = compare_specs(old, new, specs_mode)
    meter = _measured(old, new, captures, specs_mode) if captures else None
    if out is not None:
        from flexwire.atomic_files import write_together

        page = formats.to_html(comparison, _cost_text(meter, old, new))
        write_together(out.absolute().parent, {out.name: page.encode()})
        note(f"wrote {out}")
    if output is Format.JSON:
        write_data(formats.to_json(comparison, _cost_json(meter, old, new)))
    else:
        write_data(formats.to_markdown(comparison, _cost_text(meter, old, new)))
    sys.stdout.flush()
    if comparison.breaks:
        sys.exit(FINDINGS)


def _measured(old: str, new: str, captures: tuple[str, ...], mode: Mode) -> CostMeter:
    from flexwire.schema.editions import read_editions
    from flexwire.specs.cost.meter import ComparisonSide, CostMeter
    from flexwire.specs.cost.sides import SideSpecs

    before, after = (
        ComparisonSide(SideSpecs(read_editions([path], mode)[0])) for path in (old, new)
    )
    meter = CostMeter(before, after)
    measure(meter, captures, ())
    return meter


def _cost_text(meter: CostMeter | None, old: str, new: str) -> str:
    from flexwire.specs.cost import formats

    if meter is None:
        return ""
    title = f"{new}, against {old}; versions: sent"
    return formats.to_text(meter, title, width=_WIDTH, whole=False)


def _cost_json(meter: CostMeter | None, old: str, new: str) -> dict[str, Any] | None:
    from flexwire.specs.cost import formats

    if meter is None:
        return None
    document: dict[str, Any] = json.loads(
        formats.to_json(meter, {"old": old, "new": new, "at": "sent"})
    )
    return document
