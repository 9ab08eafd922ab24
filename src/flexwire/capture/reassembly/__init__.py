"""From TCP segments to frames: the connection of a segment, its order, and where frames begin.

Python objects do all of it, segment by segment. Kernels do the same in columns (`flows`, `merging`,
`segments`, `frames`). They take the segments that they are sure of and stop before any other. The
objects take that one, and both continue from the same state. So the result equals that of the
objects alone. Columns need NumPy and PyArrow, objects need neither.
"""
