"""The survey: one pass over a whole capture, which finds the state before each part.

A capture is decoded in parts, in any order and by many tasks. The meaning of a frame depends on the
frames before it on its connection. So one pass goes through all packets first, decodes next to
nothing, and keeps the state that each part needs for decoding. If a capture is large, the pass
itself is done in pieces, which are merged afterwards. Captures of several hosts that must be merged
by time have no pieces, so tasks divide their connections. docs/survey.md explains the pass with ten
segments.

The laws of this room (tests below `tests/`):

- A range is decoded from the state at its cut alone, and decoding it twice gives identical bytes,
  because Spark repeats tasks (`tables/test_ranges.py`).
- A piece's guesses are used only after they are verified against the real state
  (`tables/test_fold.py`, `tables/test_exchanges.py`).
- Shares of the connections, joined, give what one survey of all gives, with the same rows in the
  same order (`tables/test_shares.py`).
- A row of a stream of captures says what was captured up to its frame's last byte, so it does not
  depend on where the stream was cut (`tables/test_following.py`), nor on whether it was killed and
  went on from its saved state (`tables/test_saved_stream.py`).
"""

from flexwire.extras import require

require("flexwire.survey", "columnar", "numpy", "pyarrow")
