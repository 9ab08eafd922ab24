"""Which request a response answers, and what the headers of both say, over the frames of a capture.

Kernels take the frames that they are sure of. The others are read one by one, and both go on from
one state.
"""

from flexwire.extras import require

require("flexwire.capture.pairing", "columnar", "numpy", "pyarrow")
