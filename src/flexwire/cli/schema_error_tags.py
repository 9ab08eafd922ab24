"""`flexwire schema error-tags`: apply KIP-636 to a set of message specs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from flexwire.cli.options import Format, InputError, format_option, read_mode_option
from flexwire.cli.standard_input import spec_name, takes_standard_input
from flexwire.cli.terminal import print_line

if TYPE_CHECKING:
    from flexwire.schema.error_tags import TaggedErrors
    from flexwire.schema.parse import Mode


@click.command("error-tags")
@click.argument("source", metavar="IN")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="The output directory for the specs. Existing specs with the same names are replaced.",
)
@read_mode_option
@format_option
@takes_standard_input(source=spec_name)
def schema_error_tags(*, source: str, out: Path, specs_mode: Mode, output: Format) -> None:
    """Turn error codes and error messages into tagged fields, as KIP-636 proposes.

    Every RPC with an error code gets a new version, in which its errors are tagged fields at every
    level. The specs keep their formatting and comments. Specs without errors are copied unchanged.

    IN is a file, a directory, a jar, a source tree, REV:PATH (a path in a git revision),
    release:NAME (a release in the bundled catalog), or - for standard input.
    """
    from flexwire.schema.error_tags import tag_errors
    from flexwire.schema.sources import read_texts

    path = Path(source)
    if path.exists() and path.resolve() in {out.resolve(), out.resolve() / path.name}:
        raise InputError(f"{out} contains the input; choose another directory")
    tagged = tag_errors(read_texts(source), mode=specs_mode)
    # Files are written as bytes, so that line endings do not change.
    from flexwire.atomic_files import write_together

    write_together(out, {Path(spec.source).name: spec.text.encode() for spec in tagged})
    if output is Format.JSON:
        print(json.dumps([_as_json(spec) for spec in tagged], indent=2))
    else:
        _print_summary(tagged, out)


def _as_json(spec: TaggedErrors) -> dict[str, object]:
    return {
        "message": spec.spec.name,
        "version": spec.version,
        "reason": spec.reason or None,
        "madeFlexible": spec.made_flexible,
        "errorCodes": spec.error_codes,
        "errorMessages": spec.error_messages,
        "sentNulls": spec.sent_nulls,
    }


def _print_summary(tagged: list[TaggedErrors], out: Path) -> None:
    changed = [spec for spec in tagged if spec.version is not None]
    print_line(f"wrote {len(tagged)} specs to {out}; {len(changed)} have a new version")
    error_codes = sum(spec.error_codes for spec in tagged)
    print(f"  {error_codes:5} error codes are tagged fields in the new versions")
    print(f"  {sum(spec.error_messages for spec in tagged):5} error messages too", end="")
    null_count = sum(spec.sent_nulls for spec in tagged)
    print(
        f"; {null_count} of these are still written if null, because not all versions allow null"
        * bool(null_count)
    )
    for spec in changed:
        if spec.made_flexible:
            print(f"        {spec.spec.name}: v{spec.version} becomes the first flexible version")
    unchanged = Counter(spec.reason for spec in tagged if spec.version is None)
    if unchanged:
        print(f"{unchanged.total()} are unchanged:")
        for reason, count in unchanged.most_common():
            print(f"  {count:5} {reason}")
