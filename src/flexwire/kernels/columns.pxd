"""A columnar program and a run of it: operations, columns, levels and defaults.

`flexwire.columnar.program` has the same layout as words of eight bytes in NumPy arrays.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

# The kinds of fields in messages, which come after the types of fixed width in `cursor.pxd`.
# `flexwire.columnar.operations` describes each of them.
cdef enum:
    WIDENED = 9
    STRING, BYTES, NUMBERS, BULK, ARRAY, TABLE, NEXT, MARKER, TAGS, TAG, TAG_END
    FILL, CHECK, VALID, JUMP, END, REFUSE

# The forms of tagged fields.
cdef enum:
    SECTION, INTERLEAVED, BUFFER

# The kinds of defaults.
cdef enum:
    NUMBER, DOUBLE, FLAG, TEXT, NO_TEXT, NO_ITEMS, NULL_ITEMS, NULL_NUMBER, PRESENT, MISSING

cdef enum:
    UUID_TEXT = 22         # the number of letters

# Columns and levels are identified by their distance from the first one, in bytes.

# An operation that reads or writes a value or an array, or that says where to continue.
cdef struct Operation:
    int64_t code
    int64_t column
    int64_t level
    int64_t is_nullable
    int64_t is_compact
    int64_t least          # the smallest size of an element; for WIDENED, the type of the number
    Operation *after
    int64_t width

# The operations TAGS and TAG. In TAGS, only `after` differs from this.
cdef struct TagsOperation:
    int64_t code
    int64_t column
    int64_t level
    int64_t known_count
    int64_t form
    KnownTag *known
    int64_t refused_count
    const int64_t *refused

# The operations FILL and CHECK.
cdef struct FillOperation:
    int64_t code
    int64_t column
    int64_t level
    int64_t is_nullable
    int64_t is_compact
    const Default *defaults
    Operation *after
    int64_t count

# The operation NUMBERS: rows of numbers, grouped by their width.
cdef struct NumbersOperation:
    int64_t code
    int64_t column
    const NumberRow *ints
    const NumberRow *shorts
    const NumberRow *longs
    const NumberRow *others
    const NumberRow *end
    int64_t width          # the width of all numbers together

# The type of a number, its column, and its distance from the first number in the message.
cdef struct NumberRow:
    int64_t kind
    int64_t column
    int64_t place

# A known tagged field: its tag, the operations that read or write it, and its default.
cdef struct KnownTag:
    int64_t tag
    Operation *value
    const Default *defaults
    int64_t count

# The default of one column: the bits of a number, or the address and length of a text.
cdef struct Default:
    int64_t kind
    int64_t column
    int64_t value
    int64_t length
    int64_t level
    int64_t is_loose       # null also counts as the default

# A column. Parts that it does not have are NULL. Validity is in bytes for decoding, and in bits for
# encoding.
cdef struct Column:
    uint8_t *data
    int64_t capacity       # the bytes of a text; for encoding an array, its number of elements
    int32_t *offsets
    uint8_t *valid
    int64_t width
    int64_t bit            # for encoding: the first bit of the values and of the validity
    int64_t valid_bit

# All columns within the same array.
cdef struct Level:
    int64_t count
    int64_t capacity
    int64_t start          # the first element of the current row

# The data for undoing a row that is refused: an array's column, its level, and the level of its
# elements.
cdef struct Branch:
    int64_t column
    int64_t level
    int64_t items

# The position of a run in an array or in tagged fields.
cdef struct Frame:
    int64_t left           # the number of elements or tagged fields that remain
    int64_t index          # the index outside of an array; for tagged fields, the next known one
    const uint8_t *end     # the end of the bytes around a tagged field
    int64_t tag            # the last tag

cdef struct Run:
    Operation *refuse
    Operation **entries
    const int32_t *which
    int64_t first
    int64_t row
    int64_t rows
    int8_t *refused
    Operation *blank
    Column *columns
    Level *levels
    Frame *stack
    const Branch *branches
    int64_t branch_count
    const uint8_t *data
    int64_t size
    const void *offsets
    const uint8_t *valid
    int64_t valid_bit
    # The position of a run, with which it can continue.
    Operation *operation
    const uint8_t *position
    const uint8_t *end
    Frame *frame
    int64_t index
    # The part that must grow, and its new size.
    int64_t grow
    int64_t need
    # For encoding: the output, and the end or size of each row.
    uint8_t *out
    uint8_t *limit
    int64_t written
    void *ends
    # How reading ended, and whether the input has int64 offsets.
    int64_t status
    int64_t is_wide

cdef enum Status:
    DONE, GROW_LEVEL, GROW_DATA


cdef inline Column *column_at(Column *columns, int64_t distance) noexcept nogil:
    """Return the column at a distance of this many bytes from the first column."""
    return <Column *> (<char *> columns + distance)


cdef inline Level *level_at(Run *run, int64_t distance) noexcept nogil:
    """Return the level at a distance of this many bytes from the first level."""
    return <Level *> (<char *> run.levels + distance)


cdef inline void store_native(uint8_t *at, int64_t width, int64_t value) noexcept nogil:
    """Store a number of 1, 2, 4 or 8 bytes in a column, in this machine's little-endian order."""
    if width == 4:
        memcpy(at, &value, 4)
    elif width == 8:
        memcpy(at, &value, 8)
    elif width == 2:
        memcpy(at, &value, 2)
    else:
        at[0] = <uint8_t> value


cdef inline void copy_text(uint8_t *target, const uint8_t *source, int64_t size) noexcept nogil:
    """Copy bytes. Calling memcpy takes longer than copying a few bytes."""
    if size > 16:
        memcpy(target, source, size)
    elif size >= 8:
        memcpy(target, source, 8)
        memcpy(target + size - 8, source + size - 8, 8)
    elif size >= 4:
        memcpy(target, source, 4)
        memcpy(target + size - 4, source + size - 4, 4)
    elif size > 0:
        target[0] = source[0]
        target[size >> 1] = source[size >> 1]
        target[size - 1] = source[size - 1]
