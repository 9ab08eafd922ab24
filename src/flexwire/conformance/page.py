"""Render a run as a single HTML page that needs no other files and no network access."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import flexwire
from flexwire.conformance.formats import (
    alone_lines,
    also_lines,
    difference_rows,
    finding_lines,
    grouped_findings,
    remark_lines,
)
from flexwire.conformance.matrix import BESIDE, matrix_columns, matrix_legend, matrix_rows
from flexwire.facts.units import plural, safe
from flexwire.report.page_environment import page_environment, read_template_file
from flexwire.report.render import breakable

if TYPE_CHECKING:
    from jinja2 import Environment

    from flexwire.conformance.runs import ConformanceRun

MOST_SHOWN: Final = 500
"""The maximum number of groups of deviations and differences on the page. Additional groups are
only counted.
"""


def to_html(run: ConformanceRun) -> str:
    """Return the page: summary, matrix, deviations with their bytes, and remaining objects."""
    found, differences = grouped_findings(run), difference_rows(run)
    view = {
        "run": run,
        "columns": [kind.value for kind in matrix_columns(run)],
        "rows": matrix_rows(run),
        "legend": matrix_legend(run),
        "deviates": _deviates,
        "found": [
            (first, [*[*finding_lines(first, run.against)][1:], *also_lines(others)])
            for first, others in found[:MOST_SHOWN]
        ],
        "left_out": len(found) - MOST_SHOWN,
        "differences": differences[:MOST_SHOWN],
        "differences_left_out": len(differences) - MOST_SHOWN,
        "alone": [*alone_lines(run)],
        "remarks": [*remark_lines(run)],
        "flexwire_version": flexwire.__version__,
        "style": read_template_file("flexwire.report", "report.css"),
    }
    return _environment().get_template("conformance.html.j2").render(view).strip() + "\n"


def _deviates(cell: str) -> bool:
    """Return whether a cell of the matrix contains a deviation of the first broker."""
    return any("DEVIATES" in words.partition(BESIDE)[0] for words in cell.split(", "))


@cache
def _environment() -> Environment:
    environment = page_environment("flexwire.conformance", "the page of a conformance run", "docs")
    environment.filters.update(breakable=breakable, plural=plural, safe_text=safe)
    return environment
