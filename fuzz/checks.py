"""Laws about checking specs: any texts are reported on, in every format, without other errors.

The first byte chooses the mode. A spec follows or, for breaking changes, two specs with a zero byte
between them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from flexwire.errors import SpecError
from flexwire.schema.editions import editions_of
from flexwire.schema.parse import parse_spec
from flexwire.schema.sources import SpecFile
from flexwire.specs.breaking.changes import breaking_rules
from flexwire.specs.breaking.report import compare
from flexwire.specs.lint import formats
from flexwire.specs.lint.config import Config, rules_named
from flexwire.specs.lint.lint import lint, read_message
from fuzz.law import LawBrokenError
from fuzz.modes import mode_of

if TYPE_CHECKING:
    from flexwire.schema.parse import Mode
    from flexwire.specs.finding import Report

_NAME = "Fuzzed.json"


def lint_specs(data: bytes) -> None:
    """Lint accepts any bytes, names existing places, and reports what the parser refuses."""
    mode, content = mode_of(data), data[1:]
    source = SpecFile(_NAME, _NAME, "", content, whole=False)
    told = read_message(source, mode)[1]
    report = lint([source], Config(rules_named("ALL"), mode))
    _check_places(report, content)
    _check_formats(report)
    if not told:
        try:
            parse_spec(content.decode(), mode=mode)
        except SpecError as error:
            raise LawBrokenError(f"{mode}: {error}, and lint has nothing: {content!r}") from error


def _check_places(report: Report, content: bytes) -> None:
    """Check that every finding is in the text, or directly behind the end of a line."""
    lines = content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for one in report.findings:
        if not (0 < one.line <= len(lines) and 0 < one.column <= len(lines[one.line - 1]) + 1):
            raise LawBrokenError(f"no such place: {one}, of {content!r}")


def _check_formats(report: Report) -> None:
    count = len(report.findings)
    shown = formats.to_text(report, 80, colour=True)
    if not shown.replace("\x1b", "").replace("\n", "").isprintable():
        raise LawBrokenError(f"not for a terminal: {shown!r}")
    found = (
        len(json.loads(formats.to_json(report))),
        len(json.loads(formats.to_sarif(report))["runs"][0]["results"]),
        len(formats.to_github_actions(report).splitlines()),
    )
    ET.fromstring(formats.to_junit(report))  # noqa: S314 - our own text
    if found != (count,) * len(found):
        raise LawBrokenError(f"{count} findings, of which the formats have {found}: {report}")


def breaking(data: bytes) -> None:
    """Two specs are compared, or one is refused; a spec compared with itself breaks nothing."""
    mode = mode_of(data)
    old, _, new = data[1:].partition(b"\0")
    try:
        _compare(new, new, mode)
        report = _compare(old, new, mode)
    except SpecError:
        return
    _check_places(report, new)
    _check_formats(report)


def _compare(old: bytes, new: bytes, mode: Mode) -> Report:
    (before, _), (after, texts) = (
        editions_of([SpecFile(_NAME, _NAME, "", content, whole=False)], mode)
        for content in (old, new)
    )
    rules = breaking_rules().keys()
    report = compare(before, after, texts, rules, Config(frozenset(rules), mode))
    if old == new and report.findings:
        raise LawBrokenError(f"a spec against itself: {report.findings[0]}, {new!r}")
    return report
