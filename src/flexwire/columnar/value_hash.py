"""The constants of the hash by which a process and its workers tell values apart.

The hash is never stored or sent. `kernels/hashing.pxd` has the same constants, and a test compares
the two.
"""

from __future__ import annotations

# One multiplication and one shift add a word of the value to the hash. Finally, the hash is mixed
# until every bit depends on all other bits. The constants are odd, and positive as signed words.
TAKE, FIRST_MIX, SECOND_MIX = 0x1E3779B97F4A7C15, 0x7F51AFD7ED558CCD, 0x44CEB9FE1A85EC53
TAKE_SHIFT, MIX_SHIFT = 29, 33
