"""Convert TCP segments to frames: find each segment's connection, its order, and frame starts.

Python objects can do all of this, segment by segment. Kernels do the same in columns (`flows`,
`merging`, `segments`, `frames`). They process the segments that they are sure of, and stop before
any other segment. The objects process that segment, and both continue from the same state. The
result is therefore equal to that of the objects alone. Columns need NumPy and PyArrow. Objects need
neither.
"""
