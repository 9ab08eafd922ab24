"""The report: facts about a capture in, one self-contained HTML file out.

The page and the analysis meet in one value, `Facts`: plain figures and texts, with a JSON form. So
a page can be made anew without the capture, and a program can read everything that is on it. Tables
(`tables`, `matrix`, `audit`), charts and sentences are made of the facts, and the template only
places them. Facts come from hostile traffic, so each text is escaped and cut on its way out.
Nothing here knows of captures, messages or Spark.
"""

from __future__ import annotations

from flexwire.facts.facts import Facts
from flexwire.report.render import render

__all__ = ["Facts", "render"]
