"""The report: facts about a capture in, one self-contained HTML file out.

`Facts` is the only input; nothing here knows of captures, messages or Spark.
"""

from __future__ import annotations

from flexwire.report.facts import Facts
from flexwire.report.render import render

__all__ = ["Facts", "render"]
