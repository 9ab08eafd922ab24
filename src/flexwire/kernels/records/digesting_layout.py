"""The words of one run of the kernel that digests record batches: what it says of each."""

from __future__ import annotations

from flexwire.kernels.records.columns_layout import R_KEY

# A call begins with the words of reading into columns, up to those of the columns; of these it uses
# the batches, the ranges, the data and the crcs. A refused batch is REFUSED, and GROW says that the
# keys have no room for those of the next one.
#
# D_DIGESTS has a digest for each batch of the table, in the same row. Keys stand one after the
# other from D_KEYS on, D_USED of them so far; D_SEED is what their hashes begin with. D_SIZES has a
# word for each of the `SIZES` classes of record sizes: how many records are of it.
(
    D_DIGESTS,
    D_KEYS,
    D_USED,
    D_CAPACITY,
    D_SEED,
    D_SIZES,
) = range(R_KEY, R_KEY + 48, 8)
DIGESTING = R_KEY + 48

# What a batch's records come to; a tombstone is a record with a key and a null for its value. The
# timestamps are the lowest and the highest, in milliseconds, those that are -1 left out.
DIGEST = 64
(
    G_RECORDS,
    G_KEY_BYTES,
    G_VALUE_BYTES,
    G_NULL_KEYS,
    G_TOMBSTONES,
    G_HEADERS,
    G_OLDEST,
    G_NEWEST,
) = range(0, DIGEST, 8)

# A record's key: 128 bits of hash, the record's offset, and its bytes.
KEY = 32
K_HASH, K_OTHER_HASH, K_OFFSET, K_SIZE = range(0, KEY, 8)

# Sizes below `EXACT` are a class each; above that there are `HALF` classes up to each power of two.
HALF = 64
EXACT = 2 * HALF
# As many as sizes of 31 bits have.
SIZES = HALF * 26
