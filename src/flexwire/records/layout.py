"""Where the fields stand before the records of a batch, and before the key of a message."""

from __future__ import annotations

import struct

# Magic 0 and 1: an entry of a message set starts with its offset and the size of what follows.
ENTRY = struct.Struct(">qi")
# Offset, size, crc, magic, attributes and, in magic 1, timestamp.
PREFIXES = (struct.Struct(">qiIBB"), struct.Struct(">qiIBBq"))
# Magic 2: base offset, batch length, partition leader epoch, magic, crc, attributes, last offset
# delta, base and max timestamp, producer id and epoch, base sequence, record count.
HEADER = struct.Struct(">qiiBIhiqqqhii")
HEADER_SIZE = HEADER.size
CRC_START = 21

# At the same place in all of them, as is the size of what follows it.
MAGIC_POSITION = 16
# What the crc of a message covers.
MESSAGE_CRC_START = MAGIC_POSITION
CRC_SIZE = 4

RECORD_BATCH = 2
"""The magic of record batches."""
MESSAGE_SETS = (0, 1)
"""Those of message sets."""
LEAST_SIZES = (26, 34, HEADER_SIZE)
"""The whole size of the smallest batch of each magic."""
NO_VALUE = -1
"""What a timestamp, a producer id or an epoch is where there is none."""
