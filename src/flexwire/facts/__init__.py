"""The findings of an analysis: plain numbers and strings, with a JSON form.

An analysis fills in these classes. The report, the command line and other programs read them, and
``facts.json`` is their JSON form. A report can therefore be generated again without the capture,
and a program can read everything that a report states. `facts` contains most classes. `audit`,
`answers` and `captures` contain the classes for larger subjects. `units` formats numbers for
people. `flexwire.measures` computes the numbers, and `flexwire.report` shows them.

Laws of this package:

- **Nothing here imports PyArrow or Spark,** so facts can be read without these libraries.
  Import-linter enforces this.
- **Facts survive JSON unchanged,** and JSON that does not match the classes is refused with the
  path of the invalid value.
"""
