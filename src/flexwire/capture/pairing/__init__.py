"""Pairs of requests and responses among the frames of a capture, and their headers.

Kernels read the frames that they are sure of. The other frames are read as Python objects, one by
one. Both continue from the same state.
"""

from flexwire.extras import require

require("flexwire.capture.pairing", "columnar", "numpy", "pyarrow")
