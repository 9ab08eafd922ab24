"""The numbers of the formats, each once: how long, how high and how wide anything on the wire is.

The reference executor, the generated source and the kernels take them from here, so that all accept
the same bytes. Lengths are in bytes unless said otherwise.
"""

from __future__ import annotations

from typing import Final

INT8_MIN: Final = -(2**7)
INT8_MAX: Final = 2**7 - 1
INT16_MIN: Final = -(2**15)
INT16_MAX: Final = 2**15 - 1
UINT16_MAX: Final = 2**16 - 1
INT32_MIN: Final = -(2**31)
INT32_MAX: Final = 2**31 - 1
UINT32_MAX: Final = 2**32 - 1
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

RANGES: Final = {
    "INT8": (INT8_MIN, INT8_MAX),
    "INT16": (INT16_MIN, INT16_MAX),
    "UINT16": (0, UINT16_MAX),
    "INT32": (INT32_MIN, INT32_MAX),
    "UINT32": (0, UINT32_MAX),
    "INT64": (INT64_MIN, INT64_MAX),
}
"""The lowest and the highest number of each integer type, by the type's name."""

LONGEST_STRING: Final = INT16_MAX
"""The most bytes of a string, compact ones too: Kafka's own writer refuses more."""
LONGEST: Final = INT32_MAX
"""The most bytes of bytes and records, and the most elements of an array."""

HIGHEST_TAG: Final = INT32_MAX
"""The highest tag of a tag section; its unsigned varint could be twice that."""
HIGHEST_TAG_IN_BUFFER: Final = INT16_MAX
"""The highest tag of an optional field buffer (KIP-482's first draft), where it is an int16."""

VARINT_BITS: Final = 32
VARLONG_BITS: Final = 64
GROUP_BITS: Final = 7
"""The bits that each byte of a varint holds; the eighth bit means that another byte follows."""
VARINT_BYTES: Final = -(-VARINT_BITS // GROUP_BITS)
VARLONG_BYTES: Final = -(-VARLONG_BITS // GROUP_BITS)
"""The most bytes of a varint and of a varlong."""

FIRST_MILLISECOND: Final = -62_135_596_800_000
"""The start of the year 1, in ms since 1970: the first of Python's and Spark's times."""
LAST_MILLISECOND: Final = 253_402_300_799_999
"""The end of the year 9999, the last year of both."""
