"""What an analysis found: plain figures and texts, with a JSON form.

The analysis fills these classes. The report, the command line and other programs read them. Nothing
here imports PyArrow or Spark, or knows how a figure is made.
"""
