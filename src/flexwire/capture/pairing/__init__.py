"""Pairs of requests and responses in a capture's frames, and the headers of these frames.

Kernels read the frames that they can read with certainty. The other frames are read as Python
objects, one at a time. Kernels and objects continue from the same state.
"""

from flexwire.extras import require

require("flexwire.capture.pairing", "columnar", "numpy", "pyarrow")
