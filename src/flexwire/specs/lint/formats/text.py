"""Findings for people: the place, the rule, what is wrong, and the line with a mark under it."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

import click

from flexwire.specs.finding import window

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.specs.finding import Finding
    from flexwire.specs.report import Report

# Where nothing says how wide a line may be, excerpts still fit a screen.
_WIDTH = 100
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\w.+-]+')


def write(report: Report, width: int | None = None, *, colour: bool = False) -> str:
    """Write the report; ``width`` is that of the terminal, None where there is none.

    Without a terminal every finding begins with one line that has all of it.
    """
    lines: list[str] = []
    for one in report.findings:
        lines += [*_told(one, width, colour=colour), ""]
    lines.append(_summary(report, colour=colour))
    if report.unstable:
        told = _count(report.unstable, "finding")
        lines.append(f"{told} in unstable versions left out; --unstable shows them")
    return "\n".join(lines) + "\n"


def _told(one: Finding, width: int | None, *, colour: bool) -> Iterator[str]:
    place = f"{one.source}:{one.line}:{one.column}:"
    whole = f"{place} {one.rule} {one.message}"
    for line in [whole] if width is None else _wrapped(whole, width):
        # The place begins a line; the rule begins one too, or follows the place.
        told = line.replace(one.rule, _styled(one.rule, colour=colour, fg="red", bold=True), 1)
        yield told.replace(place, _styled(place, colour=colour, bold=True), 1)
    if one.excerpt:
        yield from _excerpt(one, width or _WIDTH, colour=colour)


def _excerpt(one: Finding, width: int, *, colour: bool) -> Iterator[str]:
    """The line, and marks under the word or text that begins at the column."""
    number = str(one.line)
    text, at = window(one.excerpt, one.excerpt_column, width - len(number) - 5)
    token = _TOKEN.match(text, at - 1)
    marks = "^" * (len(token[0]) if token else 1)
    for margin, shown in (
        (number, text),
        (" " * len(number), " " * (at - 1) + _styled(marks, colour=colour, fg="red", bold=True)),
    ):
        yield f"  {_styled(f'{margin} |', colour=colour, fg='blue')} {shown}"


def _styled(text: str, *, colour: bool, fg: str | None = None, bold: bool = False) -> str:
    return click.style(text, fg=fg, bold=bold) if colour else text


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _summary(report: Report, *, colour: bool) -> str:
    files = _count(len(report.files), "file")
    if not report.findings:
        return _styled(f"{files}, no findings", colour=colour, fg="green")
    told = _count(len(report.findings), "finding")
    where = len({one.source for one in report.findings})
    return f"{told} in {where} of {files}; '{report.command} --explain RULE' says why"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
