"""Findings as a JUnit report: each file is a test, and its findings are the test's failure."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from flexwire.printable import printable

if TYPE_CHECKING:
    from flexwire.specs.finding import Finding
    from flexwire.specs.report import Report


def write(report: Report) -> str:
    """Write one suite; a file without findings is a test that passed."""
    found: dict[str, list[Finding]] = {printable(name): [] for name in report.files}
    for one in report.findings:
        found.setdefault(one.source, []).append(one)
    failed = sum(1 for findings in found.values() if findings)
    counts = f'tests="{len(found)}" failures="{failed}" errors="0"'
    name = quoteattr(report.command)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites name={name} {counts}>",
        f"  <testsuite name={name} {counts}>",
    ]
    for file, findings in found.items():
        opened = f"    <testcase classname={quoteattr(report.command)} name={quoteattr(file)}"
        if not findings:
            lines.append(f"{opened}/>")
            continue
        # A test fails once: readers of the format count the first failure and drop others.
        title = findings[0].rule if len(findings) == 1 else f"{len(findings)} findings"
        text = "\n".join(map(str, findings))
        facts = f"type={quoteattr(findings[0].rule)} message={quoteattr(title)}"
        lines += [
            f"{opened}>",
            f"      <failure {facts}>{escape(text)}</failure>",
            "    </testcase>",
        ]
    return "\n".join([*lines, "  </testsuite>", "</testsuites>"]) + "\n"
