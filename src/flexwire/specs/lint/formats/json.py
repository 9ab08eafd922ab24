"""Findings as a JSON array."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flexwire.specs.report import Report


def write(report: Report) -> str:
    """Write the findings with their places, which count from 1."""
    found = [
        {
            "source": one.source,
            "line": one.line,
            "column": one.column,
            "rule": one.rule,
            "category": report.rules[one.rule].category.name,
            "message": one.message,
        }
        for one in report.findings
    ]
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"
