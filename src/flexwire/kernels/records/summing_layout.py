"""The words of one run of the kernel that counts and adds records, and its table of sums."""

from __future__ import annotations

from flexwire.kernels.records.columns_layout import R_KEY

# A call begins with the words of reading into columns, up to those of the columns; of these it uses
# the batches, the ranges, the data and the crcs. A refused batch is REFUSED, and GROW says that the
# sums have no room for the next one: they are to be taken, and begun anew.
#
# Sums stand one after the other from T_SUMS on, T_USED of them so far. Which one is a record's is
# found in T_INDEX: a power of two of words, of which T_MASK is one less, each 0 or one more than
# the number of its sum. T_BY_KEY and T_BY_VALUE are -1 where sizes of keys and values tell sums
# apart, and else 0.
(
    T_SUMS,
    T_USED,
    T_CAPACITY,
    T_INDEX,
    T_MASK,
    T_BY_KEY,
    T_BY_VALUE,
) = range(R_KEY, R_KEY + 56, 8)
SUMMING = R_KEY + 56

# A sum: what its batches have alike, the sizes of key and value as they stand on the wire (twice
# the size, 1 for null; 0 where they do not tell sums apart), how many records, and their bytes.
SUM = 48
U_FACT, U_KEY, U_VALUE, U_RECORDS, U_KEY_BYTES, U_VALUE_BYTES = range(0, SUM, 8)

# So many places are looked at for a sum, that chosen sizes cannot make the search long.
MOST_PLACES = 32
