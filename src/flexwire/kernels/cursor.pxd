"""The primitives: numbers, varints, lengths and tags, read at a cursor with a limit.

All of them are inlined. Bytes that are cut off, too long or too large make a function return False,
and the caller then refuses the input. The cursor may then be anywhere before its end.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "cursor.h" nogil:
    # Big-endian numbers at an address.
    int16_t load_int16(const uint8_t *at)
    uint16_t load_uint16(const uint8_t *at)
    int32_t load_int32(const uint8_t *at)
    uint32_t load_uint32(const uint8_t *at)
    int64_t load_int64(const uint8_t *at)
    double load_float64(const uint8_t *at)
    void store_uint16(uint8_t *at, uint16_t raw)
    void store_uint32(uint8_t *at, uint32_t raw)
    void store_uint64(uint8_t *at, uint64_t raw)
    # Adjacent numbers in the byte order of this machine.
    void store_uint32s(uint8_t *at, const uint8_t *source, int64_t count)
    # The size of a varint in bytes, and a function that writes it and returns its end.
    int groups_of(uint64_t raw)
    uint8_t *put_groups(uint8_t *at, uint64_t raw)
    # Every second bit of a number, starting with the lowest, and the reverse, for interleaved
    # headers of tags.
    int64_t gather(uint64_t value)
    uint64_t spread(uint64_t value)
    # Hints for the compiler that Cython defines.
    bint likely(bint condition)
    bint unlikely(bint condition)
    # Copies 32 or 64 bytes at a time. It may read and write up to 63 additional bytes.
    void copy_chunks(uint8_t *target, const uint8_t *source, int64_t size)

    ctypedef struct Cursor:
        const uint8_t *at
        const uint8_t *end

    ctypedef struct Number:
        uint64_t value
        const uint8_t *after

    # Reads a varint of at most this many groups of 7 bits, of which the last is at most `last`. If
    # the varint is refused, `after` is NULL.
    Number read_groups(const uint8_t *at, const uint8_t *end, int groups, int last)

# The types of fixed width, from one byte to sixteen, so that a comparison finds the width. The
# programs for columns and for objects add their own codes after these.
cdef enum:
    BOOL, INT8, INT16, UINT16, INT32, UINT32, INT64, FLOAT64, UUID

cdef enum:
    UUID_SIZE = 16
    STRING_WIDTH = 2       # the number of bytes of a string's length that is not compact
    WIDTH = 4              # the number of bytes of any other length or count that is not compact

cdef enum:
    HIGHEST_TAG = 0x7FFFFFFF
    LONGEST = 0x7FFFFFFF
    LONGEST_STRING = 0x7FFF
    VARINT_GROUPS = 5
    VARINT_LAST = 0x0F
    VARLONG_GROUPS = 10
    VARLONG_LAST = 0x01


cdef inline int64_t left(const Cursor *cursor) noexcept nogil:
    """Return the number of remaining bytes."""
    return cursor.end - cursor.at


cdef inline const uint8_t *take(Cursor *cursor, int64_t count) noexcept nogil:
    """Move the cursor by this many bytes; return their start, or NULL if there are too few."""
    cdef const uint8_t *begin = cursor.at
    if unlikely(count > cursor.end - begin):
        return NULL
    cursor.at = begin + count
    return begin


cdef inline bint read_varint(Cursor *cursor, uint64_t *number) noexcept nogil:
    """Read an unsigned varint. Most have one byte."""
    cdef Number varint
    if likely(cursor.at < cursor.end and cursor.at[0] < 0x80):
        number[0] = cursor.at[0]
        cursor.at += 1
        return True
    varint = read_groups(cursor.at, cursor.end, VARINT_GROUPS, VARINT_LAST)
    if varint.after == NULL:
        return False
    number[0] = varint.value
    cursor.at = varint.after
    return True


cdef inline int width_of(int64_t kind) noexcept nogil:
    """Return the number of bytes of a value with fixed width."""
    if kind <= INT8:
        return 1
    if kind <= UINT16:
        return 2
    if kind <= UINT32:
        return 4
    return UUID_SIZE if kind == UUID else 8


cdef inline int64_t load_number(int64_t kind, const uint8_t *at) noexcept nogil:
    """Return a number of any type from its bytes; for a double, return its bits."""
    if kind == INT32:
        return load_int32(at)
    if kind == INT16:
        return load_int16(at)
    if kind == INT8:
        return <int8_t> at[0]
    if kind == BOOL:
        return at[0]
    if kind == UINT16:
        return load_uint16(at)
    if kind == UINT32:
        return load_uint32(at)
    return load_int64(at)


cdef inline bint is_in_range(int64_t kind, int64_t value) noexcept nogil:
    """Return whether a number is in the range of an integer type."""
    if kind == INT32:
        return value == <int32_t> value
    if kind == INT16:
        return value == <int16_t> value
    if kind == INT8:
        return value == <int8_t> value
    if kind == UINT16:
        return value == <uint16_t> value
    if kind == UINT32:
        return value == <uint32_t> value
    return True


cdef inline uint8_t *store_number(int64_t kind, uint8_t *at, int64_t value) noexcept nogil:
    """Write a number of any type (for a double, its bits); return its end."""
    if kind <= INT8:
        at[0] = <uint8_t> value
        return at + 1
    if kind <= UINT16:
        store_uint16(at, <uint16_t> value)
        return at + 2
    if kind <= UINT32:
        store_uint32(at, <uint32_t> value)
        return at + 4
    store_uint64(at, <uint64_t> value)
    return at + 8


cdef inline int64_t signed(uint64_t raw) noexcept nogil:
    """Return the number that a zig-zag form means: 0, 1, 2, 3 mean 0, -1, 1, -2."""
    return <int64_t> (raw >> 1) ^ -<int64_t> (raw & 1)


cdef inline bint read_zigzag(
    Cursor *cursor, uint64_t *raw, int groups, int last, bint roomy
) noexcept nogil:
    """Read a number and leave it in zig-zag form; see `signed`. Most have one or two bytes.

    If it is ``roomy``, one or two bytes after the end may be read. The caller then checks later
    whether the cursor is beyond the end.
    """
    cdef Number varint
    if likely((roomy or cursor.end - cursor.at > 0) and cursor.at[0] < 0x80):
        raw[0] = cursor.at[0]
        cursor.at += 1
        return True
    if likely((roomy or cursor.end - cursor.at > 1) and 0 < cursor.at[1] < 0x80):
        raw[0] = cursor.at[0] & 0x7F | <uint64_t> cursor.at[1] << 7
        cursor.at += 2
        return True
    varint = read_groups(cursor.at, cursor.end, groups, last)
    if varint.after == NULL:
        return False
    raw[0] = varint.value
    cursor.at = varint.after
    return True


cdef inline bint read_int32(Cursor *cursor, int64_t *number, bint roomy) noexcept nogil:
    """Read a signed varint."""
    cdef uint64_t raw
    if not read_zigzag(cursor, &raw, VARINT_GROUPS, VARINT_LAST, roomy):
        return False
    number[0] = signed(raw)
    return True


cdef inline bint read_int64(Cursor *cursor, int64_t *number, bint roomy) noexcept nogil:
    """Read a signed varlong."""
    cdef uint64_t raw
    if not read_zigzag(cursor, &raw, VARLONG_GROUPS, VARLONG_LAST, roomy):
        return False
    number[0] = signed(raw)
    return True


cdef inline bint read_size(Cursor *cursor, int64_t *size, bint roomy) noexcept nogil:
    """Read a signed varint that is a size, or -1 for null.

    The size decides where the next bytes are, and a branch is faster there than arithmetic.
    """
    cdef uint64_t raw
    if not read_zigzag(cursor, &raw, VARINT_GROUPS, VARINT_LAST, roomy):
        return False
    size[0] = raw >> 1
    if raw & 1:
        size[0] = -1
        return raw == 1
    return True


cdef inline bint read_length(
    Cursor *cursor, bint compact, bint nullable, int width, int64_t *length
) noexcept nogil:
    """Read a length or count from 0 to LONGEST, or -1 for null if that is allowed."""
    cdef uint64_t raw
    cdef const uint8_t *at
    if compact:
        if not read_varint(cursor, &raw):
            return False
        length[0] = <int64_t> raw - 1
    else:
        at = take(cursor, width)
        if at == NULL:
            return False
        length[0] = load_int16(at) if width == 2 else load_int32(at)
    return length[0] <= LONGEST and (length[0] >= 0 or (length[0] == -1 and nullable))


cdef inline uint64_t zigzag(int64_t number) noexcept nogil:
    """Return the zig-zag form of a signed number."""
    return <uint64_t> number << 1 ^ <uint64_t> (number >> 63)


cdef inline int zigzag_size(int64_t number) noexcept nogil:
    """Return how many bytes `write_zigzag` will write, which is one or two for most numbers."""
    cdef uint64_t raw = zigzag(number)
    if likely(raw < 1 << 14):
        return 1 if raw < 0x80 else 2
    return groups_of(raw)


cdef inline uint8_t *write_varint(uint8_t *at, uint64_t raw) noexcept nogil:
    """Write an unsigned varint or varlong; return its end."""
    if likely(raw < 0x80):
        at[0] = <uint8_t> raw
        return at + 1
    return put_groups(at, raw)


cdef inline uint8_t *write_zigzag(uint8_t *at, int64_t number) noexcept nogil:
    """Write a signed number as a varint or varlong; return its end."""
    cdef uint64_t raw = zigzag(number)
    if likely(raw < 0x80):
        at[0] = <uint8_t> raw
        return at + 1
    if likely(raw < 1 << 14):
        at[0] = <uint8_t> (raw | 0x80)
        at[1] = <uint8_t> (raw >> 7)
        return at + 2
    return put_groups(at, raw)
