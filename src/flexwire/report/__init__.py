"""The report: one self-contained HTML file, made from facts about a capture.

The page depends on the analysis only through one value, `Facts`: plain figures and texts, with a
JSON form. So a page can be made again without the capture, and a program can read everything on it.
Tables (`tables`, `matrix`, `audit`), charts and sentences are made from the facts, and the template
only places them. Facts come from hostile traffic, so each text is escaped and cut before it is
written. Nothing here depends on captures, messages or Spark.
"""

from __future__ import annotations

from flexwire.facts.facts import Facts
from flexwire.report.render import render

__all__ = ["Facts", "render"]
