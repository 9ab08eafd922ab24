"""The limits of the formats: the largest lengths, numbers and widths in the protocol.

The reference executor, the generated source and the kernels use these numbers, so that all accept
the same bytes. Lengths are in bytes unless a comment says otherwise.
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
"""The lowest and the highest number of each integer type, by the name of the type."""

LONGEST_STRING: Final = INT16_MAX
"""The largest number of bytes in a string, even a compact string. Kafka's own writer refuses longer
strings.
"""
LONGEST: Final = INT32_MAX
"""The largest number of bytes in a value of type bytes or records, and of elements in an array."""

HIGHEST_TAG: Final = INT32_MAX
"""The highest tag in a tag section. An unsigned varint could hold twice this number."""
HIGHEST_TAG_IN_BUFFER: Final = INT16_MAX
"""The highest tag in an optional field buffer (KIP-482's first draft), in which it is an int16."""

VARINT_BITS: Final = 32
VARLONG_BITS: Final = 64
GROUP_BITS: Final = 7
"""The number of value bits in each byte of a varint. The eighth bit means that another byte
follows."""
VARINT_BYTES: Final = -(-VARINT_BITS // GROUP_BITS)
VARLONG_BYTES: Final = -(-VARLONG_BITS // GROUP_BITS)
"""The largest number of bytes in a varint and in a varlong."""

FIRST_MILLISECOND: Final = -62_135_596_800_000
"""The start of the year 1, in ms since 1970. Python and Spark cannot represent earlier times."""
LAST_MILLISECOND: Final = 253_402_300_799_999
"""The end of the year 9999, in ms since 1970. Python and Spark cannot represent later years."""
