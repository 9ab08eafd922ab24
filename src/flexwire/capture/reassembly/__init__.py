"""Convert TCP segments to frames: find connections, restore the order, and find where frames begin.

Python objects can do all of this, segment by segment. Kernels do the same in columns (`flows`,
`merging`, `segments`, `frames`). Kernels process the segments that they can process with
certainty, and stop before any other segment. The objects process that segment, and both continue
from the same state. The result is therefore equal to that of the objects alone. Columns need NumPy
and PyArrow. Objects need neither.
"""
