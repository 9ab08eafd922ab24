"""The findings of an analysis: plain numbers and texts, with a JSON form.

An analysis fills these classes. The report, the command line and other programs read them, and
``facts.json`` is their JSON form. A report can therefore be made again without the capture, and a
program can read everything that a report says. `facts` contains most classes. `audit`, `answers`
and `captures` contain the classes for larger subjects. `units` formats numbers for people.
`flexwire.measures` computes the numbers, and `flexwire.report` shows them.

Laws of this package:

- **Nothing here imports PyArrow or Spark,** so facts can be read without these libraries.
  Import-linter enforces this.
- **Facts survive JSON unchanged,** and JSON that does not fit is refused with the path of the
  invalid value.
"""
