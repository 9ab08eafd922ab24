"""`flexwire schema errors`: print Kafka's error codes by name."""

from __future__ import annotations

import json
import re
import textwrap

import click

from flexwire.cli.options import Format, InputError, format_option
from flexwire.errors import short

_MARGIN = " " * 6
_NEGATIVE = re.compile(r"-\d+")


class _NegativeNumberCommand(click.Command):
    """A command that reads "-1" as an error code and not as an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, after moving negative numbers behind all options."""
        numbers = [argument for argument in args if _NEGATIVE.fullmatch(argument)]
        other_arguments = [argument for argument in args if argument not in numbers]
        return super().parse_args(
            ctx, [*other_arguments, "--", *numbers] if numbers else other_arguments
        )


@click.command("errors", cls=_NegativeNumberCommand)
@click.argument("text", default="")
@format_option
def schema_errors(*, text: str, output: Format) -> None:
    """List Kafka's error codes.

    Each line contains an error code, its name, the release that introduced the code, and whether
    the same request may succeed later. The release "2.4" means that 2.4 or an earlier release
    introduced the code.

    TEXT limits the list to one code, or to names that contain TEXT, regardless of case. The list
    then explains each code. If no code matches, the command suggests the nearest code and exits
    with 1.
    """
    from flexwire.protocol.error_codes import error_codes, nearest_codes

    codes = [
        code
        for code in error_codes()
        if text == str(code.code) or text.upper() in f"{code.name} {code.former_name or ''}"
    ]
    if not codes:
        near = " or ".join(f"{code.code} {code.name}" for code in nearest_codes(text))
        raise InputError(f"no error code {short(text)}; did you mean {near}?")
    if output is Format.JSON:
        shown = [
            {
                "code": code.code,
                "name": code.name,
                "since": code.since,
                "isRetriable": code.is_retriable,
                "formerName": code.former_name,
                "renamed": code.renamed,
                "meaning": code.meaning,
            }
            for code in codes
        ]
        print(json.dumps(shown, indent=2))
        return
    width = max((len(code.name) for code in codes), default=0)
    for code in codes:
        renamed = f"{code.former_name} before {code.renamed}" if code.former_name else ""
        retriable = "retriable" if code.is_retriable else ""
        line = f"{code.code:4}  {code.name:{width}}  {code.since:4}  {retriable:9}  {renamed}"
        print(line.rstrip())
        if text:
            print(
                textwrap.fill(code.meaning, 80, initial_indent=_MARGIN, subsequent_indent=_MARGIN)
            )
    print(f"\n{len(codes)} error code{'s' * (len(codes) != 1)}")
