"""`flexwire schema error-tags`: KIP-636 on a set of message specs."""

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
    help="The directory for the specs; those of the same name there are replaced.",
)
@read_mode_option
@format_option
@takes_standard_input(source=spec_name)
def schema_error_tags(*, source: str, out: Path, specs_mode: Mode, output: Format) -> None:
    """Make error codes and messages tagged fields, as KIP-636 proposes.

    Every RPC with an error code gets a new version, in which its errors are tagged fields at every
    level. The specs keep their formatting and comments; what stays as it is is copied.

    IN is a file, a directory, a jar, a source tree, REV:PATH of git, release:NAME, a release of the
    catalog, or - for standard input.
    """
    from flexwire.schema.error_tags import tag_errors
    from flexwire.schema.sources import read_texts

    given = Path(source)
    if given.exists() and given.resolve() in {out.resolve(), out.resolve() / given.name}:
        raise InputError(f"{out} holds what is to be read; name another directory")
    done = tag_errors(read_texts(source), mode=specs_mode)
    # As bytes: a line's end stays what it was.
    from flexwire.atomic_files import write_together

    write_together(out, {Path(one.source).name: one.text.encode() for one in done})
    if output is Format.JSON:
        print(json.dumps([_as_json(one) for one in done], indent=2))
    else:
        _print_summary(done, out)


def _as_json(one: TaggedErrors) -> dict[str, object]:
    return {
        "message": one.spec.name,
        "version": one.version,
        "reason": one.reason or None,
        "madeFlexible": one.made_flexible,
        "errorCodes": one.error_codes,
        "errorMessages": one.error_messages,
        "sentNulls": one.sent_nulls,
    }


def _print_summary(done: list[TaggedErrors], out: Path) -> None:
    changed = [one for one in done if one.version is not None]
    print_line(f"wrote {len(done)} specs to {out}; {len(changed)} have a new version")
    print(f"  {sum(one.error_codes for one in done):5} error codes are tagged fields in it")
    print(f"  {sum(one.error_messages for one in done):5} error messages too", end="")
    sent = sum(one.sent_nulls for one in done)
    print(f"; the nulls of {sent} are written still, as not all versions have them" * bool(sent))
    for one in changed:
        if one.made_flexible:
            print(f"        {one.spec.name} v{one.version} is its first flexible version")
    left = Counter(one.reason for one in done if one.version is None)
    if left:
        print(f"{left.total()} are as they were:")
        for reason, count in left.most_common():
            print(f"  {count:5} {reason}")
