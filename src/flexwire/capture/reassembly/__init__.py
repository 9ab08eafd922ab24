"""From TCP segments to frames: which connection a segment is of, its order, and where frames begin.

Objects do all of it, segment by segment. Kernels do the same in columns (`flows`, `merging`,
`segments`, `frames`): they take what they are sure of and stop before any other, the objects take
that one, and both go on from one state. So what comes out is what the objects alone would give.
Columns take NumPy and PyArrow, objects neither.
"""
