"""`flexwire schema errors`: Kafka's error codes by name."""

from __future__ import annotations

import json
import re
import textwrap

import click

from flexwire.cli.options import Format, InputError, format_option
from flexwire.errors import short

_MARGIN = " " * 6
_NEGATIVE = re.compile(r"-\d+")


class _TakesNumbers(click.Command):
    """Takes "-1" for the error code that it is, and not for an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with negative numbers after all options."""
        numbers = [one for one in args if _NEGATIVE.fullmatch(one)]
        others = [one for one in args if one not in numbers]
        return super().parse_args(ctx, [*others, "--", *numbers] if numbers else others)


@click.command("errors", cls=_TakesNumbers)
@click.argument("text", default="")
@format_option
def schema_errors(*, text: str, output: Format) -> None:
    """List Kafka's error codes.

    Each with its name, the release that brought it, and whether the same may succeed later.
    "2.4" is for all that 2.4 has.

    TEXT narrows the list to one code, or to names that contain it, in any case; what each means is
    said then. If there is none, the nearest is suggested, with exit code 1.
    """
    from flexwire.protocol.error_codes import error_codes, nearest_codes

    found = [
        one
        for one in error_codes()
        if text == str(one.code) or text.upper() in f"{one.name} {one.former_name or ''}"
    ]
    if not found:
        near = " or ".join(f"{one.code} {one.name}" for one in nearest_codes(text))
        raise InputError(f"no error code {short(text)}; did you mean {near}?")
    if output is Format.JSON:
        shown = [
            {
                "code": one.code,
                "name": one.name,
                "since": one.since,
                "isRetriable": one.is_retriable,
                "formerName": one.former_name,
                "renamed": one.renamed,
                "meaning": one.meaning,
            }
            for one in found
        ]
        print(json.dumps(shown, indent=2))
        return
    width = max((len(one.name) for one in found), default=0)
    for one in found:
        renamed = f"{one.former_name} before {one.renamed}" if one.former_name else ""
        retriable = "retriable" if one.is_retriable else ""
        told = f"{one.code:4}  {one.name:{width}}  {one.since:4}  {retriable:9}  {renamed}"
        print(told.rstrip())
        if text:
            print(textwrap.fill(one.meaning, 80, initial_indent=_MARGIN, subsequent_indent=_MARGIN))
    print(f"\n{len(found)} error code{'s' * (len(found) != 1)}")
