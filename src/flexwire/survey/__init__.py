"""The survey: one pass over a whole capture that finds the state before each part.

A capture is decoded in parts, in any order and by many tasks. The meaning of a frame depends on the
frames before it on its connection. One pass therefore reads all packets first. This pass decodes
almost nothing, and keeps the state that each part needs for decoding. For a large capture, this
pass itself runs in pieces, which are merged afterwards. Captures of several hosts that must be
merged by time are not divided into pieces. Instead, their connections are divided among tasks.
docs/survey.md explains the pass with an example of ten segments.

The laws of this package (tests below `tests/`):

- A range is decoded only from the state at its cut. Decoding a range twice gives identical bytes,
  because Spark repeats tasks (`tables/test_ranges.py`).
- A piece's guesses are used only after they are verified against the real state
  (`tables/test_fold.py`, `tables/test_exchanges.py`).
- Joining the shares of the connections gives the same rows, in the same order, as one survey of all
  connections (`tables/test_shares.py`).
- A row of a stream of captures depends only on the bytes up to its frame's last byte. It does not
  matter where the stream was cut (`tables/test_following.py`), or whether the stream was killed and
  continued from its saved state (`tables/test_saved_stream.py`).
"""

from flexwire.extras import require

require("flexwire.survey", "columnar", "numpy", "pyarrow")
