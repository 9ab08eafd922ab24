"""Pairs of requests and responses over the frames of a capture, and their headers.

Kernels take the frames that they are sure of. The other frames are read one by one. Both continue
from the same state.
"""

from flexwire.extras import require

require("flexwire.capture.pairing", "columnar", "numpy", "pyarrow")
