"""The words of one run of a record kernel: what it finds where in memory.

All are offsets in bytes from the address of what they belong to. A kernel file takes them as
constants, so a change here is a change of the kernels.
"""

from __future__ import annotations

from flexwire.wire.limits import INT64_MIN

# A record batch of magic 2, as its header says. B_START and B_END are where its records stand, in
# the data or inflated; B_BUDGET is the most records and record headers it may have; B_ROWS how many
# rows it became; B_PIECE in which of several pieces of data it is, where they are scanned as such.
BATCH = 152
(
    B_POSITION,
    B_SIZE,
    B_BASE_OFFSET,
    B_EPOCH,
    B_CRC,
    B_ATTRIBUTES,
    B_LAST_DELTA,
    B_BASE_TIMESTAMP,
    B_MAX_TIMESTAMP,
    B_PRODUCER,
    B_PRODUCER_EPOCH,
    B_SEQUENCE,
    B_COUNT,
    B_START,
    B_END,
    B_BUDGET,
    B_ROWS,
    B_SKIP,
    B_PIECE,
) = range(0, BATCH, 8)

# A B_COUNT that reading refuses, so that `flexwire.records` is asked.
COUNT_REFUSED = -1

# What scanning takes and gives: the data from S_POSITION to S_END, and a table of batches. S_CRC is
# whether reading can check crcs, 1 or 0.
SCAN = 56
S_DATA, S_POSITION, S_END, S_TABLE, S_CAPACITY, S_COUNT, S_CRC = range(0, SCAN, 8)
# Why it stopped.
(FULL, AT_END, OTHER) = range(3)

# What scanning several pieces of data takes and gives: where each begins and ends, in which and at
# which position to go on, and a table of batches.
PIECES = 80
(
    P_DATA,
    P_PIECES,
    P_STARTS,
    P_ENDS,
    P_PIECE,
    P_POSITION,
    P_TABLE,
    P_CAPACITY,
    P_COUNT,
    P_CRC,
) = range(0, PIECES, 8)

# A column of bytes: data, its capacity, int32 offsets, validity in bytes. K_DATA of 0: not wanted.
COLUMN = 40
K_DATA, K_CAPACITY, K_OFFSETS, K_VALID, K_NULLS = range(0, COLUMN, 8)
# Bytes after a column's capacity, which are written to and mean nothing: two chunks are copied at
# once.
SPARE = 64

# A moment is a timestamp in microseconds. What is in milliseconds before the first of these, which
# begins the year 1, or after the last, which ends the year 9999, is not one; nor is -1.
NO_MOMENT = INT64_MIN

# What reading takes and gives. Records from R_FIRST to R_BATCHES of the table go into the columns,
# R_ROWS and R_HEADERS rows into each so far. R_DATA is what batches' positions count from; with
# R_CHECK their crcs are checked. R_TIMESTAMPS gets moments, of which R_NO_MOMENTS are `NO_MOMENT`;
# some of these may have been taken back.
(
    R_TABLE,
    R_FIRST,
    R_BATCHES,
    R_ROWS,
    R_ROWS_CAPACITY,
    R_OFFSETS,
    R_TIMESTAMPS,
    R_LOWEST_OFFSET,
    R_HIGHEST_OFFSET,
    R_LOWEST_TIME,
    R_HIGHEST_TIME,
    R_HEADER_OFFSETS,
    R_HEADERS,
    R_HEADERS_CAPACITY,
    R_DATA,
    R_CHECK,
    R_NO_MOMENTS,
    R_DATA_END,
) = range(0, 144, 8)
R_KEY = 144
R_VALUE = R_KEY + COLUMN
R_HEADER_KEY = R_VALUE + COLUMN
R_HEADER_VALUE = R_HEADER_KEY + COLUMN
READ = R_HEADER_VALUE + COLUMN
# How it ended: all is read, a column is too small for the next batch, the next batch is refused.
(DONE, GROW, REFUSED) = range(3)

# A column of bytes to be written: data and how many bytes there are, int32 offsets, and validity in
# bits, the first of which is V_BIT; V_VALID of 0: no nulls.
SOURCE = 40
V_DATA, V_SIZE, V_OFFSETS, V_VALID, V_BIT = range(0, SOURCE, 8)

# What writing takes and gives: rows from W_FIRST to W_ROWS are written from W_OUT on, W_EACH to a
# batch, before which W_GAP bytes are left for its header. W_OUT has W_CAPACITY bytes, of which
# W_USED are used; where the W_BATCHES batches begin and end stands in W_TABLE, two words for each.
# W_HEADER_OFFSETS of 0: no record headers.
(
    W_FIRST,
    W_ROWS,
    W_EACH,
    W_GAP,
    W_OFFSETS,
    W_TIMESTAMPS,
    W_BASE_OFFSET,
    W_BASE_TIMESTAMP,
    W_HEADER_OFFSETS,
    W_HEADERS,
    W_OUT,
    W_CAPACITY,
    W_USED,
    W_TABLE,
    W_BATCHES,
) = range(0, 120, 8)
W_KEY = 120
W_VALUE = W_KEY + SOURCE
W_HEADER_KEY = W_VALUE + SOURCE
W_HEADER_VALUE = W_HEADER_KEY + SOURCE
WRITE = W_HEADER_VALUE + SOURCE
EXTENT = 16
