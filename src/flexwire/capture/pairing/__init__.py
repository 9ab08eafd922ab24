"""Pairs of requests and responses over the frames of a capture, and their headers.

Kernels take the frames that they are sure of. The others are read one by one, and both go on from
one state.
"""

from flexwire.extras import require

require("flexwire.capture.pairing", "columnar", "numpy", "pyarrow")
