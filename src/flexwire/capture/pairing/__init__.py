"""Pairs of requests and responses in a capture's frames, and these frames' headers.

Kernels read the frames that they can read with certainty. Other frames are read one at a time, as
Python objects. Kernels and objects continue from the same state.
"""

from flexwire.extras import require

require("flexwire.capture.pairing", "columnar", "numpy", "pyarrow")
