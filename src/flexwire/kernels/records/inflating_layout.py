"""The words of one run of the kernels that inflate, and bound what codecs are to inflate."""

from __future__ import annotations

# Batches from I_FIRST to I_ROWS of the table are inflated until they have I_ENOUGH bytes, I_TOTAL
# so far. What is inflated goes from I_TARGET on and stays before I_STOP; none may have more than
# I_LIMIT bytes, and I_BUDGET becomes the B_BUDGET of each. I_GZIP says afterwards whether gzip is
# inflated, 1 or 0: without an instruction for its crc it is not.
INFLATE = 80
(
    I_TABLE,
    I_FIRST,
    I_ROWS,
    I_TOTAL,
    I_ENOUGH,
    I_TARGET,
    I_STOP,
    I_LIMIT,
    I_BUDGET,
    I_GZIP,
) = range(0, INFLATE, 8)
# How it ended: with enough or at the end, or before a batch that a codec is to be asked for.
(INFLATED, ASK) = range(2)

# A bound for each of the Z_ROWS batches of the table goes into the words from Z_BOUNDS on.
BOUND = 24
Z_TABLE, Z_ROWS, Z_BOUNDS = range(0, BOUND, 8)
