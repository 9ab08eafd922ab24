"""The constants of the hash by which a process and its workers distinguish values.

The hash is never stored or sent. `kernels/hashing.pxd` has the same constants, and a test compares
them.
"""

from __future__ import annotations

# A word of the value is taken in by one multiplication and one shift, and in the end the hash is
# mixed until every bit hangs on all others. Odd, and positive in a signed word.
TAKE, FIRST_MIX, SECOND_MIX = 0x1E3779B97F4A7C15, 0x7F51AFD7ED558CCD, 0x44CEB9FE1A85EC53
TAKE_SHIFT, MIX_SHIFT = 29, 33
