"""The words of a program: how a schema is laid out in memory for the kernels.

All are offsets in bytes from the address of what they belong to. A kernel file takes them as
constants, so a change here is a change of the kernels.
"""

from __future__ import annotations

# The words of an operation, in bytes from its address: what a field is, and where its value stands.
OPERATION = 72
O_CODE, O_NULLABLE, O_COMPACT, O_ELEMENT, O_STRUCT, O_SLOT, O_TAG, O_DEFAULT, O_VALUE = range(
    0, 72, 8
)
# The words of a structure; its defaults are of the fields that are not inline.
STRUCTURE = 112
S_CLASS, S_OTHERS, S_INLINE, S_INLINES, S_FLEXIBLE, S_TAGGED, S_TAGGEDS = range(0, 56, 8)
S_REFUSED, S_REFUSEDS, S_DEFAULTS, S_ABSENT, S_ABSENTS, S_UNKNOWN, S_SIZE = range(56, 112, 8)
# The words of a default: how it is made, of what, and where it is put.
DEFAULT = 24
# The words that every call shares.
G_NONE, G_TRUE, G_FALSE, G_FROM_BYTES, G_TO_BYTES, G_INT, G_STR, G_BYTES = range(0, 64, 8)
G_LIST, G_FLOAT, G_UUID, G_DICT, G_ROOT, G_FALLBACK, G_KERNEL, G_EXCEPTION = range(64, 128, 8)
G_COUNTED, G_SMALL, G_UUID_INT, G_UUID_SAFE, G_IS_SAFE, G_SIXTEEN = range(128, 176, 8)
GLOBALS = 176
# The words that the calls of a class's method share: its versions, by which stand the words above.
V_VERSIONS, V_COUNT, V_NAME, V_FALLBACK, V_INT, V_EXCEPTION = range(0, 48, 8)
METHOD = 48
# The ints that are there as long as the interpreter: from which on, and how many.
SMALLEST, SMALLS = -5, 262
# The words of one call: where it is and ends, a spare one, where the output began, and where it is
# in a dict.
C_POSITION, C_END, C_SCRATCH, C_GLOBALS, C_OUT, C_PLACE, C_KEY, C_VALUE = range(0, 64, 8)
CALL = 64
# From so many bytes of a message on, the collector is kept off while its objects are made.
LARGE = 1024

# What its default is.
D_NONE, D_INT, D_SAME, D_EMPTY_LIST, D_EMPTY_BYTES, D_EQUAL, D_DOUBLE, D_NEVER = range(8)
# How a field that was not on the wire is made.
M_SHARED, M_LIST, M_DICT, M_CALL, M_LASTING = range(5)
