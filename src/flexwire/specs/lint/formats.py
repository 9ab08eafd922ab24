"""Print findings: there is one function for each format, which returns the complete text."""

from __future__ import annotations

import json
import re
import textwrap
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

import click

from flexwire.printable import printable
from flexwire.specs.finding import window

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.specs.finding import Finding, Report, RuleInfo


# The width that is used if the width of the terminal is unknown. Excerpts of this width fit on a
# screen.
_WIDTH = 100
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\w.+-]+')


def to_text(report: Report, width: int | None = None, *, colour: bool = False) -> str:
    """Return the report as a string.

    ``width`` is the terminal's width, or None without a terminal.

    Without a terminal, every finding begins with a single line that contains everything.
    """
    lines: list[str] = []
    for finding in report.findings:
        lines += [*_finding_lines(finding, width, colour=colour), ""]
    lines.append(_summary(report, colour=colour))
    if report.unstable:
        findings = _count(report.unstable, "finding")
        lines.append(f"not shown: {findings} in unstable versions; --unstable shows them")
    return "\n".join(lines) + "\n"


def _finding_lines(finding: Finding, width: int | None, *, colour: bool) -> Iterator[str]:
    place = f"{finding.source}:{finding.line}:{finding.column}:"
    whole = f"{place} {finding.rule} {finding.message}"
    for line in [whole] if width is None else _wrapped(whole, width):
        # The position is at the start of a line. The rule is at the start of another line, or
        # follows the position.
        styled = line.replace(
            finding.rule, _styled(finding.rule, colour=colour, fg="red", bold=True), 1
        )
        yield styled.replace(place, _styled(place, colour=colour, bold=True), 1)
    if finding.excerpt:
        yield from _excerpt(finding, width or _WIDTH, colour=colour)


def _excerpt(finding: Finding, width: int, *, colour: bool) -> Iterator[str]:
    """Yield the line, and a line that marks the word or text at the column."""
    number = str(finding.line)
    text, at = window(finding.excerpt, finding.excerpt_column, width - len(number) - 5)
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
    findings = _count(len(report.findings), "finding")
    where = len({finding.source for finding in report.findings})
    return f"{findings} in {where} of {files}; '{report.command} --explain RULE' explains a rule"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def to_json(report: Report) -> str:
    """Return the findings with their positions, which are counted from 1."""
    findings = [
        {
            "source": finding.source,
            "line": finding.line,
            "column": finding.column,
            "rule": finding.rule,
            "category": report.rules[finding.rule].category.name,
            "message": finding.message,
        }
        for finding in report.findings
    ]
    return json.dumps(findings, indent=2, ensure_ascii=False) + "\n"


def to_junit(report: Report) -> str:
    """Return one suite, in which a file without findings is a test that passed."""
    findings_by_file: dict[str, list[Finding]] = {printable(name): [] for name in report.files}
    for finding in report.findings:
        findings_by_file.setdefault(finding.source, []).append(finding)
    failed = sum(1 for findings in findings_by_file.values() if findings)
    counts = f'tests="{len(findings_by_file)}" failures="{failed}" errors="0"'
    name = quoteattr(report.command)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites name={name} {counts}>",
        f"  <testsuite name={name} {counts}>",
    ]
    for file, findings in findings_by_file.items():
        opened = f"    <testcase classname={quoteattr(report.command)} name={quoteattr(file)}"
        if not findings:
            lines.append(f"{opened}/>")
            continue
        # In JUnit, a test can fail only once. Programs that read the format count the first failure
        # and ignore the others.
        title = findings[0].rule if len(findings) == 1 else f"{len(findings)} findings"
        text = "\n".join(map(str, findings))
        facts = f"type={quoteattr(findings[0].rule)} message={quoteattr(title)}"
        lines += [
            f"{opened}>",
            f"      <failure {facts}>{escape(text)}</failure>",
            "    </testcase>",
        ]
    return "\n".join([*lines, "  </testsuite>", "</testsuites>"]) + "\n"


def to_sarif(report: Report) -> str:
    """Return one run, with the pages of the rules that were violated."""
    broken = sorted({finding.rule for finding in report.findings})
    run = {
        "tool": {
            "driver": {
                "name": "flexwire",
                "version": version("flexwire"),
                "rules": [_rule(rule_id, report.rules[rule_id]) for rule_id in broken],
            }
        },
        # Columns are counted in characters, not in UTF-16 units.
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(each_finding, report.rules[each_finding.rule], broken.index(each_finding.rule))
            for each_finding in report.findings
        ],
    }
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _rule(name: str, rule: RuleInfo) -> dict[str, Any]:
    return {
        "id": name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.page},
        "help": {"text": rule.page},
        "defaultConfiguration": {"level": rule.level},
        "properties": {"category": rule.category.name},
    }


def _result(finding: Finding, rule: RuleInfo, index: int) -> dict[str, Any]:
    region = {"startLine": finding.line, "startColumn": finding.column}
    place = {"artifactLocation": {"uri": _uri(finding.source)}, "region": region}
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": rule.level,
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": place}],
    }


def _uri(source: str) -> str:
    """Return a relative reference in which no colon looks like the end of a scheme."""
    uri = quote(source.replace("\\", "/"), safe="/")
    return f"file://{uri}" if uri.startswith("/") else uri


_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
# The source is GitHub's documentation of workflow commands. "%" must be replaced first.
_ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY_ESCAPES = _ESCAPES | {":": "%3A", ",": "%2C"}


def to_github_actions(report: Report) -> str:
    """Return one workflow command for each finding."""
    lines = []
    for finding in report.findings:
        command = _COMMANDS[report.rules[finding.rule].level]
        file = _escaped(finding.source, _PROPERTY_ESCAPES)
        place = f"file={file},line={finding.line},col={finding.column}"
        message = _escaped(finding.message, _ESCAPES)
        lines.append(f"::{command} {place},title={finding.rule}::{message}\n")
    return "".join(lines)


def _escaped(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in text)
