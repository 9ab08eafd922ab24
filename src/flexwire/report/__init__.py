"""The report: a single self-contained HTML file, created from facts about a capture.

The page receives everything from the analysis in a single value, `Facts`: plain numbers and strings
that can be stored as JSON. A page can therefore be recreated without the capture, and a program can
read everything that the page shows. The tables (`tables`, `matrix`, `audit`), the charts and the
sentences are created from the facts; the template only arranges them. Facts come from hostile
traffic, so each text is escaped and truncated before it is written. This package does not depend on
captures, messages or Spark.
"""

from __future__ import annotations

from flexwire.facts.facts import Facts
from flexwire.report.render import render

__all__ = ["Facts", "render"]
