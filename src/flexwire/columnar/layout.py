"""The words of a columnar program and of a run: the memory layout that kernels use.

All are offsets in bytes from the start of their structure. `kernels/columns.pxd` has the same
layout as structs, and a test compares both.
"""

from __future__ import annotations

# The words of an operation: its code, its column, and the next operation.
OPERATION = 64
O_CODE, O_COLUMN, O_LEVEL, O_NULLABLE, O_COMPACT, O_LEAST, O_AFTER, O_WIDTH = range(0, 64, 8)
# Of TAGS and TAG: the form; how many tagged fields are known, and their rows; likewise the tags
# that are refused.
O_FORM, O_KNOWN, O_KNOWNS, O_REFUSED, O_REFUSEDS = 32, 24, 40, 48, 56
# Of FILL and CHECK: the defaults, and how many.
O_DEFAULTS, O_COUNT = 40, 56
# Of NUMBERS: the rows of its numbers: where those of INT32 begin, where those of INT16, INT64 or
# FLOAT64, and all others do, and where they end. O_WIDTH is how many bytes all take.
O_INTS, O_SHORTS, O_LONGS, O_OTHERS, O_ROWS_END = 16, 24, 32, 40, 48

# A row of NUMBERS: the type, the column, and how far from the first of them it stands on the wire.
# VALID is one too, of no bytes.
NUMBER_ROW = 24
R_KIND, R_COLUMN, R_PLACE = range(0, 24, 8)

# The row of a known tagged field: its tag, the operations that read or write it, and its default.
KNOWN = 32
T_TAG, T_VALUE, T_DEFAULTS, T_COUNT = range(0, 32, 8)

# A default of one column: what kind, and of numbers the bits, of text the address and length.
# D_LOOSE: null stands for it too.
DEFAULT = 48
D_KIND, D_COLUMN, D_VALUE, D_LENGTH, D_LEVEL, D_LOOSE = range(0, 48, 8)
(NUMBER, DOUBLE, FLAG, TEXT, NO_TEXT, NO_ITEMS, NULL_ITEMS, NULL_NUMBER) = range(8)
PRESENT, MISSING = range(8, 10)

# A column. Decoding: values, their capacity in bytes, int32 offsets, validity in bytes; an address
# of 0 where there is none. Encoding: the same, validity in bits from K_VALID_BIT on, and flags in
# bits from K_BIT on; K_CAPACITY is how many bytes or elements there are.
COLUMN = 56
K_DATA, K_CAPACITY, K_OFFSETS, K_VALID, K_WIDTH, K_BIT, K_VALID_BIT = range(0, 56, 8)

# A level: all columns that stand in the same array. How many elements there are and may be, and
# where those of the present row began.
LEVEL = 24
N_COUNT, N_CAPACITY, N_START = range(0, 24, 8)

# For undoing a refused row: an array's column, its level, and the level of its elements.
BRANCH = 24
B_COLUMN, B_LEVEL, B_ITEMS = range(0, 24, 8)

# A frame of the stack. Of an array: how many elements are left, and the index outside. Of tagged
# fields: how many are left, the next known one, the end outside, the last tag.
FRAME = 32
F_LEFT, F_INDEX, F_KNOWN, F_END, F_TAG = 0, 8, 8, 16, 24
# Encoding tagged fields: the next unknown one and the last, and where the value began.
F_UNKNOWN, F_LAST, F_BEGAN = 0, 16, 24

# One run. The rows to do, and the input: bytes and offsets, or nothing of a row that is null.
(C_REFUSE, C_ENTRIES, C_WHICH, C_FIRST, C_ROW, C_ROWS, C_REFUSED, C_BLANK) = range(0, 64, 8)
(C_COLUMNS, C_LEVELS, C_STACK, C_BRANCHES, C_BRANCH_COUNT) = range(64, 104, 8)
(C_DATA, C_SIZE, C_OFFSETS, C_VALID, C_VALID_BIT) = range(104, 144, 8)
# The state of a run, so that it can continue.
(C_OPERATION, C_POSITION, C_END, C_FRAME, C_INDEX) = range(144, 184, 8)
# The column that must grow, and its new size.
(C_GROW, C_NEED) = range(184, 200, 8)
# Encoding: the output, its end, how much is written; and each row's end (int32) or size.
(C_OUT, C_LIMIT, C_WRITTEN, C_ENDS) = range(200, 232, 8)
# How reading ended, where it must go on; whether the input's offsets are int64, and not int32.
C_STATUS, C_WIDE = range(232, 248, 8)
CALL = 248

# The reasons why a kernel stops.
DONE, GROW_LEVEL, GROW_DATA = range(3)
# The operation between two rows.
BETWEEN = 0
