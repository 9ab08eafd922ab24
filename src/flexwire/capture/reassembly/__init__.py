"""Convert TCP segments to frames: find connections, restore the order, and find where frames begin.

Python objects can do all of this, one segment at a time. Kernels do the same work on columns
(`flows`, `merging`, `segments`, `frames`). The kernels process only the segments that they can
process with certainty, and stop before any other segment. The objects then process that segment,
and both continue from the same state. The result is therefore the same as if the objects had
processed every segment. The columnar code requires NumPy and PyArrow. Objects need neither.
"""
