"""Findings as SARIF 2.1.0, which code scanning services read."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from flexwire.specs.finding import Finding
    from flexwire.specs.report import Report, Told


def write(report: Report) -> str:
    """Write one run, with the pages of the rules that were broken."""
    broken = sorted({one.rule for one in report.findings})
    run = {
        "tool": {
            "driver": {
                "name": "flexwire",
                "version": version("flexwire"),
                "rules": [_rule(one, report.rules[one]) for one in broken],
            }
        },
        # Columns count characters, not the halves of UTF-16.
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(one, report.rules[one.rule], broken.index(one.rule)) for one in report.findings
        ],
    }
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _rule(name: str, rule: Told) -> dict[str, Any]:
    return {
        "id": name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.page},
        "help": {"text": rule.page},
        "defaultConfiguration": {"level": rule.level},
        "properties": {"category": rule.category.name},
    }


def _result(one: Finding, rule: Told, index: int) -> dict[str, Any]:
    region = {"startLine": one.line, "startColumn": one.column}
    place = {"artifactLocation": {"uri": _uri(one.source)}, "region": region}
    return {
        "ruleId": one.rule,
        "ruleIndex": index,
        "level": rule.level,
        "message": {"text": one.message},
        "locations": [{"physicalLocation": place}],
    }


def _uri(source: str) -> str:
    """A relative reference; what stands before a colon must not be taken for a scheme."""
    uri = quote(source.replace("\\", "/"), safe="/")
    return f"file://{uri}" if uri.startswith("/") else uri
