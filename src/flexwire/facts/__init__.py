"""The findings of an analysis: plain figures and texts, with a JSON form.

An analysis fills these classes. The report, the command line and other programs read them, and
``facts.json`` is their JSON form. So a report can be made again without the capture, and a program
can read everything that a report says. `facts` has most classes, `audit`, `answers` and `captures`
have the parts of larger subjects, and `units` writes figures for a person. How a figure is computed
is left to `flexwire.measures`, and how it is shown to `flexwire.report`.

Laws of this room:

- **Nothing here imports PyArrow or Spark,** so that facts can be read anywhere. Import-linter holds
  it.
- **Facts survive JSON unchanged,** and JSON that does not fit is refused with its path.
  `tests/report/test_render.py`
"""
