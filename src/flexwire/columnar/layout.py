"""The words of a columnar program and of its run: the memory layout for kernels.

The constants are byte offsets from the start of their structure. `kernels/columns.pxd` contains the
same layout as structs, and a test compares the two.
"""

from __future__ import annotations

# The words of an operation: its code, its column, and the next operation.
OPERATION = 64
O_CODE, O_COLUMN, O_LEVEL, O_NULLABLE, O_COMPACT, O_LEAST, O_AFTER, O_WIDTH = range(0, 64, 8)
# For TAGS and TAG: the form, the number of known tagged fields, and these fields' rows. The same
# words also describe refused tags.
O_FORM, O_KNOWN, O_KNOWNS, O_REFUSED, O_REFUSEDS = 32, 24, 40, 48, 56
# For FILL and CHECK: the defaults, and how many there are.
O_DEFAULTS, O_COUNT = 40, 56
# For NUMBERS: the rows of the numbers. The offsets are where the INT32 rows, the INT16 rows, the
# INT64 and FLOAT64 rows and all other rows start, and where the rows end. O_WIDTH is the total
# number of bytes of all numbers.
O_INTS, O_SHORTS, O_LONGS, O_OTHERS, O_ROWS_END = 16, 24, 32, 40, 48

# A row of NUMBERS: the type, the column, and the distance in the message from the first number.
# VALID is also such a number, but it has no bytes.
NUMBER_ROW = 24
R_KIND, R_COLUMN, R_PLACE = range(0, 24, 8)

# The row of a known tagged field: its tag, the operations that read or write it, and its default.
KNOWN = 32
T_TAG, T_VALUE, T_DEFAULTS, T_COUNT = range(0, 32, 8)

# The default of one column: its kind, and either the bits of a number or the address and length of
# a string. If D_LOOSE is set, null also counts as the default.
DEFAULT = 48
D_KIND, D_COLUMN, D_VALUE, D_LENGTH, D_LEVEL, D_LOOSE = range(0, 48, 8)
(NUMBER, DOUBLE, FLAG, TEXT, NO_TEXT, NO_ITEMS, NULL_ITEMS, NULL_NUMBER) = range(8)
PRESENT, MISSING = range(8, 10)

# A column. For decoding: the values, their capacity in bytes, int32 offsets, and validity in bytes.
# If a part does not exist, its address is 0. For encoding: the same, except that the validity bits
# start at K_VALID_BIT, and flag bits start at K_BIT. K_CAPACITY is the number of bytes or elements.
COLUMN = 56
K_DATA, K_CAPACITY, K_OFFSETS, K_VALID, K_WIDTH, K_BIT, K_VALID_BIT = range(0, 56, 8)

# A level contains all columns that are in the same array. The words of a level are the number of
# elements, the maximum number, and the first element of the current row.
LEVEL = 24
N_COUNT, N_CAPACITY, N_START = range(0, 24, 8)

# For undoing a row that was refused: an array's column, the array's level, and the level of its
# elements.
BRANCH = 24
B_COLUMN, B_LEVEL, B_ITEMS = range(0, 24, 8)

# A frame on the stack. For an array: the number of remaining elements, and the index to restore
# after the array. For tagged fields: the number of remaining fields, the next known field, the
# outer end, and the last tag.
FRAME = 32
F_LEFT, F_INDEX, F_KNOWN, F_END, F_TAG = 0, 8, 8, 16, 24
# For encoding tagged fields: the next unknown field, the end of these fields, and where the value
# starts.
F_UNKNOWN, F_LAST, F_BEGAN = 0, 16, 24

# The words of one run. The rows to process, and the input: bytes and offsets, with nothing for a
# null row.
(C_REFUSE, C_ENTRIES, C_WHICH, C_FIRST, C_ROW, C_ROWS, C_REFUSED, C_BLANK) = range(0, 64, 8)
(C_COLUMNS, C_LEVELS, C_STACK, C_BRANCHES, C_BRANCH_COUNT) = range(64, 104, 8)
(C_DATA, C_SIZE, C_OFFSETS, C_VALID, C_VALID_BIT) = range(104, 144, 8)
# The state from which a run can continue.
(C_OPERATION, C_POSITION, C_END, C_FRAME, C_INDEX) = range(144, 184, 8)
# The column that must grow, and its new size.
(C_GROW, C_NEED) = range(184, 200, 8)
# For encoding: the output, its end, the number of bytes written, and each row's end (int32) or
# size.
(C_OUT, C_LIMIT, C_WRITTEN, C_ENDS) = range(200, 232, 8)
# How reading ended, where it must continue, and whether the input has int64 rather than int32
# offsets.
C_STATUS, C_WIDE = range(232, 248, 8)
CALL = 248

# The reasons why a kernel stops.
DONE, GROW_LEVEL, GROW_DATA = range(3)
# The value of the current operation between two rows.
BETWEEN = 0
