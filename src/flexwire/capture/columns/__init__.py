"""Captures in columns: from packets to frames, and to what their headers say, in arrays.

Kernels take the packets, segments and frames that they are sure of, and stop before any other; the
objects of the room above take that one, and give back. So both go on from one state, and what comes
out is what the objects alone would give.
"""

from flexwire.extras import require

require("flexwire.capture.columns", "columnar", "numpy", "pyarrow")
