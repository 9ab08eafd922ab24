"""The survey: one pass over a whole capture, which says for each part what stands before it.

A capture is decoded in parts, in any order and by many tasks. What a frame means depends on what
came before it on its connection. So one pass goes through all packets first, decodes next to
nothing, and keeps for each part what its decoding needs. Where a capture is large, the pass itself
is done in pieces, which are merged afterwards.
"""

from flexwire.extras import require

require("flexwire.survey", "columnar", "numpy", "pyarrow")
