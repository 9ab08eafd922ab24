"""Findings as GitHub's workflow commands, which it shows beside the lines of a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flexwire.specs.report import Report

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
# Source: GitHub's documentation of workflow commands; "%" comes first.
_ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY_ESCAPES = _ESCAPES | {":": "%3A", ",": "%2C"}


def write(report: Report) -> str:
    """Write one command for each finding."""
    lines = []
    for one in report.findings:
        command = _COMMANDS[report.rules[one.rule].level]
        place = f"file={_escaped(one.source, _PROPERTY_ESCAPES)},line={one.line},col={one.column}"
        message = _escaped(one.message, _ESCAPES)
        lines.append(f"::{command} {place},title={one.rule}::{message}\n")
    return "".join(lines)


def _escaped(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(one, one) for one in text)
