"""The words of one run of the kernel that hashes values, and the numbers of the hash.

The hash is told apart by nobody outside a process and its workers: it is on no wire, in no file.
"""

from __future__ import annotations

# The values of a column of bytes: row by row an offset of four bytes into V_DATA and one more. The
# hash of each goes to V_HASHES, eight bytes a row, and to V_TEXTS one byte: 1 where it is UTF-8.
VALUES = 40
V_DATA, V_OFFSETS, V_ROWS, V_HASHES, V_TEXTS = range(0, VALUES, 8)

# A word of the value is taken in by one multiplication and one shift, and in the end the hash is
# mixed until every bit hangs on all others. Odd, and positive in a signed word.
TAKE, FIRST_MIX, SECOND_MIX = 0x1E3779B97F4A7C15, 0x7F51AFD7ED558CCD, 0x44CEB9FE1A85EC53
TAKE_SHIFT, MIX_SHIFT = 29, 33
