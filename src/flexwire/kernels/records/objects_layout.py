"""The words that every call of a function for records shares, and those of one call.

All are offsets in bytes. A kernel file takes them as constants, so a change here is a change of the
kernels.
"""

from __future__ import annotations

from flexwire.kernels.objects.layout import C_GLOBALS
from flexwire.kernels.objects.layout import CALL as _BEFORE

# What objects are made of and compared with; then where the fields of a record stand in it.
R_NONE, R_BYTES, R_INT, R_LIST, R_TUPLE, R_CLASS, R_FALLBACK, R_EXCEPTION = range(0, 64, 8)
R_OFFSET, R_TIMESTAMP, R_KEY, R_VALUE, R_HEADERS = range(64, 104, 8)
SHARED = 104
# The words of one call begin as those for messages do, and so share what writes bytes.
C_SHARED = C_GLOBALS
C_BASE_OFFSET, C_BASE_TIMESTAMP, C_NUMBER = range(_BEFORE, _BEFORE + 24, 8)
# How many records there are, how many objects may be made of them, and the timestamp that all get,
# an object or 0.
C_COUNT, C_BUDGET, C_APPEND_TIME = range(_BEFORE + 24, _BEFORE + 48, 8)
# The headers of the record before, a list or 0; and the newest timestamp that was written.
C_HEADERS, C_NEWEST = _BEFORE + 48, _BEFORE + 56
CALL = _BEFORE + 64
