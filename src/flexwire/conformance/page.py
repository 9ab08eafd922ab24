"""Shows a run as one HTML page that needs no other file and no network."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import flexwire
from flexwire.conformance.formats import (
    LEGEND,
    also_lines,
    finding_lines,
    grouped_findings,
    matrix_columns,
    matrix_rows,
    remark_lines,
)
from flexwire.facts.units import plural, safe
from flexwire.report.page_environment import page_environment, read_template_file
from flexwire.report.render import breakable

if TYPE_CHECKING:
    from jinja2 import Environment

    from flexwire.conformance.running import ConformanceRun

MOST_SHOWN: Final = 500
"""The page shows so many groups of deviations and differences; the others are counted."""


def to_html(run: ConformanceRun) -> str:
    """Write the page: the summary, the matrix, each deviation with its bytes, and what was left."""
    found = grouped_findings(run)
    view = {
        "run": run,
        "columns": [kind.value for kind in matrix_columns(run)],
        "rows": matrix_rows(run),
        "legend": LEGEND,
        "found": [
            (first, [*[*finding_lines(first)][1:], *also_lines(others)])
            for first, others in found[:MOST_SHOWN]
        ],
        "left_out": len(found) - MOST_SHOWN,
        "remarks": [*remark_lines(run)],
        "flexwire_version": flexwire.__version__,
        "style": read_template_file("flexwire.report", "report.css"),
    }
    return _environment().get_template("conformance.html.j2").render(view).strip() + "\n"


@cache
def _environment() -> Environment:
    environment = page_environment("flexwire.conformance", "the page of a conformance run", "docs")
    environment.filters.update(breakable=breakable, plural=plural, safe_text=safe)
    return environment
