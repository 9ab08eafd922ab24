"""Writes columns as messages, or measures their size: one kernel for all messages.

The input is the address of a `Run`: a program (`columns.pxd`), columns, and an output with room. An
offset is compared with the size of its column before it is used, so that nothing outside of a
column is read. A row depends only on its own state, so it can begin again after the output has
grown. If the kernel refuses a row, the row is empty in the output. The caller then lets the
reference executor write it.
"""

from libc.stdint cimport (
    int8_t,
    int16_t,
    int32_t,
    int64_t,
    uint8_t,
    uint16_t,
    uint32_t,
    uint64_t,
)
from libc.string cimport memcmp, memcpy, memmove

# The definitions for this file: a program and its columns, and the primitives for writing.
from flexwire.kernels.columns cimport *
from flexwire.kernels.cursor cimport *

cdef extern from "text.h" nogil:
    const uint64_t HIGH_BITS
    bint is_utf8(const uint8_t *at, int64_t size)
    bint read_uuid_text(uint8_t *target, const uint8_t *source)

cdef enum:
    NULL_LENGTH = -1
    HIGHEST_TAG_IN_BUFFER = 0x7FFF
    TAG_WIDTH = 2          # the number of bytes of a tag in a buffer
    # more than the size of any number and any header, for which each operation has room
    SLACK = 64
    AT_ONCE = 48           # the additional room after a length

cdef extern from *:
    """
    #define NO_TAG (1LL << 40)
    """
    const int64_t NO_TAG   # higher than all tags

# How an operation ended.
cdef enum Ending:
    WRITTEN, REFUSED, FULL, ROW_DONE, OTHER

# The position of a run in an array, or in the tagged fields of a structure.
cdef struct WriteFrame:
    int64_t left           # elements, or the next unknown tagged field
    int64_t index          # the index outside of the array, or the next known tagged field
    int64_t last           # the end of the unknown tagged fields
    uint8_t *began         # the place for the header of a known tagged field

# The position of a run. If nothing is written, `at` only counts bytes.
cdef struct Place:
    Operation *operation
    WriteFrame *frame
    int64_t index
    uint8_t *at

# A text or an array: its start in its column, and its length.
cdef struct Extent:
    int64_t begin
    int64_t length


# Reading one value from columns.

cdef inline bint is_null(const Column *column, int64_t index) noexcept nogil:
    """Return whether a value is null."""
    cdef int64_t bit = column.valid_bit + index
    return column.valid != NULL and not column.valid[bit >> 3] >> (bit & 7) & 1


cdef inline uint8_t flag_of(const Column *column, int64_t index) noexcept nogil:
    """Return a bool."""
    cdef int64_t bit = column.bit + index
    return column.data[bit >> 3] >> (bit & 7) & 1


cdef inline bint find_extent(const Column *column, int64_t index, Extent *extent) noexcept nogil:
    """Find a text or array in its column; return False if its offsets are impossible."""
    cdef int64_t end = column.offsets[index + 1]
    extent.begin = column.offsets[index]
    extent.length = end - extent.begin
    return extent.begin >= 0 and extent.length >= 0 and end <= column.capacity


cdef inline int64_t load_native(const Column *column, int64_t index) noexcept nogil:
    """Return a signed number of a column."""
    if column.width == 4:
        return (<const int32_t *> column.data)[index]
    if column.width == 8:
        return (<const int64_t *> column.data)[index]
    if column.width == 2:
        return (<const int16_t *> column.data)[index]
    return (<const int8_t *> column.data)[index]


cdef inline double as_double(int64_t bits) noexcept nogil:
    cdef double number
    memcpy(&number, &bits, 8)
    return number


cdef bint is_default(const Column *column, const Default *default, int64_t index) noexcept nogil:
    """Return whether one column has its default, compared as in the reference executor."""
    cdef int64_t kind = default.kind
    cdef bint null = is_null(column, index)
    cdef Extent extent
    if kind == NO_TEXT or kind == NULL_ITEMS or kind == NULL_NUMBER or kind == MISSING:
        return null
    if null:
        return default.is_loose != 0
    if kind == PRESENT:
        return True
    if kind == FLAG:
        return flag_of(column, index) == default.value
    if kind == NUMBER:
        return load_native(column, index) == default.value
    if kind == DOUBLE:
        # 0.0 and -0.0 are equal although their bits differ, and NaN equals nothing.
        return as_double(load_native(column, index)) == as_double(default.value)
    if not find_extent(column, index, &extent):
        return False
    if kind == NO_ITEMS:
        return extent.length == 0
    # An empty range of bytes may have no address.
    return extent.length == default.length and (
        extent.length == 0
        or memcmp(column.data + extent.begin, <const void *> <size_t> default.value, extent.length) == 0
    )


cdef bint are_defaults(
    Column *columns, const Default *default, int64_t count, int64_t index
) noexcept nogil:
    """Return whether columns have their defaults.

    If null counts as a default, so do all fields in it.
    """
    cdef const Default *end = default + count
    cdef const Column *column
    while default < end:
        column = column_at(columns, default.column)
        if not is_default(column, default, index):
            return False
        if default.kind == PRESENT and is_null(column, index):
            default += default.length
        default += 1
    return True


# Values.

cdef inline Ending grow(Run *run, const uint8_t *at, int64_t length) noexcept nogil:
    """Request room for ``length`` more bytes, and for the additional bytes of an operation."""
    run.need = at - run.out + length + SLACK
    return FULL


cdef inline uint8_t *put_length(
    const Operation *operation, int width, int64_t length, uint8_t *at, bint writing
) noexcept nogil:
    """Write a length or a count in the form that the operation requires."""
    if operation.is_compact:
        if not writing:
            return at + groups_of(<uint64_t> (length + 1))
        return write_varint(at, <uint64_t> (length + 1))
    if writing:
        if width == 2:
            store_uint16(at, <uint16_t> length)
        else:
            store_uint32(at, <uint32_t> length)
    return at + width


cdef inline Ending write_text(
    Run *run, const Operation *operation, const Column *column, int64_t index, uint8_t **at,
    bint writing, bint is_string
) noexcept nogil:
    """Write a string or bytes."""
    cdef int width = 2 if is_string else 4
    cdef const uint8_t *text
    cdef uint8_t *target
    cdef uint64_t first, last
    cdef Extent extent
    if is_null(column, index):
        at[0] = put_length(operation, width, NULL_LENGTH, at[0], writing)
        return WRITTEN if operation.is_nullable else REFUSED
    if unlikely(not find_extent(column, index, &extent)):
        return REFUSED
    text = column.data + extent.begin
    if is_string and 8 <= extent.length <= 16:
        memcpy(&first, text, 8)
        memcpy(&last, text + extent.length - 8, 8)
        if likely(not (first | last) & HIGH_BITS):
            target = put_length(operation, width, extent.length, at[0], writing)
            if writing:
                memcpy(target, &first, 8)
                memcpy(target + extent.length - 8, &last, 8)
            at[0] = target + extent.length
            return WRITTEN
    if is_string and unlikely(
        extent.length > LONGEST_STRING or not is_utf8(text, extent.length)
    ):
        return REFUSED
    target = put_length(operation, width, extent.length, at[0], writing)
    if writing:
        if unlikely(extent.length > AT_ONCE and extent.length > run.limit - target):
            return grow(run, target, extent.length)
        copy_text(target, text, extent.length)
    at[0] = target + extent.length
    return WRITTEN


cdef Ending write_value(
    const Operation *operation, const Column *column, int64_t index, uint8_t **at, bint writing
) noexcept nogil:
    """Write a uuid, or a number whose column is wider."""
    cdef int64_t kind = operation.code
    cdef int64_t value
    cdef uint8_t[UUID_SIZE] uuid
    cdef Extent extent
    if is_null(column, index):
        return REFUSED
    if kind == UUID:
        if not find_extent(column, index, &extent) or extent.length != UUID_TEXT:
            return REFUSED
        if not read_uuid_text(uuid, column.data + extent.begin):
            return REFUSED
        if writing:
            memcpy(at[0], uuid, UUID_SIZE)
        at[0] += UUID_SIZE
        return WRITTEN
    if kind == WIDENED:
        kind = operation.least
    value = load_native(column, index)
    if not is_in_range(kind, value):
        return REFUSED
    if writing:
        store_number(kind, at[0], value)
    at[0] += width_of(kind)
    return WRITTEN


# Adjacent numbers, and arrays of structures with only numbers.

cdef inline bint write_numbers(
    Column *columns, const NumbersOperation *operation, int64_t index, uint8_t *at, bint writing
) noexcept nogil:
    """Write adjacent numbers, each with the width of its column; return False for a null."""
    cdef const NumberRow *row = operation.ints
    cdef const Column *column
    while row < operation.end:
        column = column_at(columns, row.column)
        if unlikely(is_null(column, index)):
            return False
        if writing:
            if row < operation.shorts:
                store_uint32(at + row.place, (<const uint32_t *> column.data)[index])
            elif row < operation.longs:
                store_uint16(at + row.place, (<const uint16_t *> column.data)[index])
            elif row < operation.others:
                store_uint64(at + row.place, (<const uint64_t *> column.data)[index])
            elif row.kind == INT8:
                at[row.place] = column.data[index]
            elif row.kind == BOOL:
                at[row.place] = flag_of(column, index)
        row += 1
    return True


cdef inline void gather_numbers(
    int64_t kind, const Column *column, int64_t first, int64_t count, uint8_t *at, int64_t stride
) noexcept nogil:
    """Write a column of a table."""
    cdef int64_t number
    if kind == INT32:
        for number in range(count):
            store_uint32(at + stride * number, (<const uint32_t *> column.data)[first + number])
    elif kind == INT16:
        for number in range(count):
            store_uint16(at + stride * number, (<const uint16_t *> column.data)[first + number])
    elif kind == INT8:
        for number in range(count):
            at[stride * number] = column.data[first + number]
    elif kind == BOOL:
        for number in range(count):
            at[stride * number] = flag_of(column, first + number)
    elif kind != VALID:
        for number in range(count):
            store_uint64(at + stride * number, (<const uint64_t *> column.data)[first + number])


cdef Ending write_table(
    Run *run, const Operation *operation, const Extent *items, uint8_t **at, bint writing
) noexcept nogil:
    """Write an array of structures with only numbers, column by column.

    If columns have nulls or tagged fields, the result is REFUSED. The elements must then be written
    one by one.
    """
    cdef const NumbersOperation *numbers = <const NumbersOperation *> (operation + 1)
    cdef const TagsOperation *tags = <const TagsOperation *> (operation + 2)
    cdef const NumberRow *row = numbers.ints
    cdef int64_t stride = operation.width
    cdef int64_t number
    cdef bint has_tags = tags.code == TAGS
    if has_tags and column_at(run.columns, tags.column).capacity > 0:
        return REFUSED
    while row < numbers.end:
        if column_at(run.columns, row.column).valid != NULL:
            return REFUSED
        row += 1
    if writing:
        if items.length * stride > run.limit - at[0]:
            return grow(run, at[0], items.length * stride)
        if has_tags:
            for number in range(items.length):
                at[0][stride * number + stride - 1] = 0
        row = numbers.ints
        while row < numbers.end:
            gather_numbers(
                row.kind, column_at(run.columns, row.column), items.begin, items.length,
                at[0] + row.place, stride,
            )
            row += 1
    at[0] += items.length * stride
    return WRITTEN


# Arrays.

cdef inline Ending write_count(
    const Operation *operation, const Column *column, int64_t index, uint8_t **at, bint writing,
    Extent *items
) noexcept nogil:
    """Write the number of an array's elements, and find these; a null array has none."""
    cdef bint is_sound = find_extent(column, index, items)
    if is_null(column, index):
        at[0] = put_length(operation, 4, NULL_LENGTH, at[0], writing)
        items.length = 0
        return WRITTEN if operation.is_nullable else REFUSED
    if unlikely(not is_sound):
        return REFUSED
    at[0] = put_length(operation, 4, items.length, at[0], writing)
    return WRITTEN


cdef inline Ending write_bulk(
    Run *run, const Operation *operation, const Column *column, int64_t index, uint8_t **at,
    bint writing
) noexcept nogil:
    """Write an array of numbers in one step."""
    cdef const Column *values = column + 1
    cdef int64_t number, size
    cdef uint8_t *target = at[0]
    cdef Extent items
    cdef Ending ending = write_count(operation, column, index, &target, writing, &items)
    if unlikely(ending != WRITTEN):
        return ending
    size = items.length * operation.width
    if values.valid != NULL:
        for number in range(items.begin, items.begin + items.length):
            if is_null(values, number):
                return REFUSED
    if writing:
        if unlikely(size > AT_ONCE and size > run.limit - target):
            return grow(run, target, size)
        if operation.width == 4:
            store_uint32s(target, values.data + 4 * items.begin, items.length)
        elif operation.width == 8:
            gather_numbers(UUID, values, items.begin, items.length, target, 8)
        elif operation.width == 2:
            gather_numbers(INT16, values, items.begin, items.length, target, 2)
        else:
            memcpy(target, values.data + items.begin, size)
    at[0] = target + size
    return WRITTEN


# Tagged fields, both known and unknown, in ascending order.

cdef int64_t next_known(
    Column *columns, const TagsOperation *operation, int64_t number, int64_t index
) noexcept nogil:
    """Return the first known tagged field from ``number`` on whose value is not the default."""
    while number < operation.known_count and are_defaults(
        columns, operation.known[number].defaults, operation.known[number].count, index
    ):
        number += 1
    return number


cdef bint is_unknown(const TagsOperation *operation, int64_t tag) noexcept nogil:
    """Return whether a tag can be unknown: it must not be that of a field in any version."""
    cdef int64_t number
    if not 0 <= tag <= HIGHEST_TAG:
        return False
    if operation.form == BUFFER and tag > HIGHEST_TAG_IN_BUFFER:
        return False
    for number in range(operation.known_count):
        if operation.known[number].tag == tag:
            return False
    for number in range(operation.refused_count):
        if operation.refused[number] == tag:
            return False
    return True


cdef int64_t unknown_tag(
    const TagsOperation *operation, const WriteFrame *frame, const Column *column
) noexcept nogil:
    """Return the next unknown tag, NO_TAG if there are none left, or -1 if it cannot be written."""
    cdef int64_t item = frame.left
    cdef const int64_t *tags = <const int64_t *> column[2].data
    if item >= frame.last:
        return NO_TAG
    if is_null(column + 1, item) or is_null(column + 2, item) or is_null(column + 3, item):
        return -1
    # The reference executor sorts such tags.
    if not is_unknown(operation, tags[item]):
        return -1
    if item + 1 < frame.last and tags[item + 1] <= tags[item]:
        return -1
    return tags[item]


cdef inline int header_size(int64_t form, int64_t tag, int64_t size) noexcept nogil:
    """Return how many bytes `put_header` will write."""
    if form == INTERLEAVED:
        return groups_of(spread(<uint64_t> tag) << 1 | spread(<uint64_t> size))
    if form == BUFFER:
        return groups_of(zigzag(size)) + TAG_WIDTH
    return groups_of(<uint64_t> tag) + groups_of(<uint64_t> size)


cdef uint8_t *put_header(uint8_t *at, int64_t form, int64_t tag, int64_t size) noexcept nogil:
    """Write the header of a tagged field; return its end."""
    if form == INTERLEAVED:
        return write_varint(at, spread(<uint64_t> tag) << 1 | spread(<uint64_t> size))
    if form == BUFFER:
        at = write_varint(at, zigzag(size))
        store_uint16(at, <uint16_t> tag)
        return at + TAG_WIDTH
    return write_varint(write_varint(at, <uint64_t> tag), <uint64_t> size)


cdef inline int likely_header(int64_t form) noexcept nogil:
    """Return the usual size of a header. This much space is left before a value."""
    return 1 + TAG_WIDTH if form == BUFFER else 2


cdef Ending open_tags(
    Column *columns, const TagsOperation *operation, WriteFrame *frame, int64_t index, uint8_t **at,
    bint writing, int64_t *count
) noexcept nogil:
    """Write the number of tagged fields, and put them on the stack."""
    cdef const Column *column = column_at(columns, operation.column)
    cdef Extent unknown
    cdef int64_t number
    unknown.begin = unknown.length = 0
    # Usually no row of the column has an unknown tagged field.
    if column.capacity > 0 and not is_null(column, index):
        if not find_extent(column, index, &unknown):
            return REFUSED
    frame.left, frame.last, frame.index = unknown.begin, unknown.begin + unknown.length, 0
    count[0] = unknown.length
    number = next_known(columns, operation, 0, index)
    while number < operation.known_count:
        count[0] += 1
        number = next_known(columns, operation, number + 1, index)
    # An empty buffer is also written as a 0.
    if operation.form != BUFFER or count[0] == 0:
        at[0] = write_varint(at[0], <uint64_t> count[0]) if writing else (
            at[0] + groups_of(<uint64_t> count[0])
        )
    return WRITTEN


cdef Ending write_unknown(
    Run *run, const TagsOperation *operation, WriteFrame *frame, int64_t tag, uint8_t **at, bint writing
) noexcept nogil:
    """Write an unknown tagged field."""
    cdef const Column *data = column_at(run.columns, operation.column) + 3
    cdef uint8_t *target = at[0]
    cdef Extent extent
    if not find_extent(data, frame.left, &extent):
        return REFUSED
    if operation.form == BUFFER and extent.length == 0:
        return REFUSED
    if writing:
        target = put_header(target, operation.form, tag, extent.length)
        if extent.length > run.limit - target:
            return grow(run, target, extent.length)
        copy_text(target, data.data + extent.begin, extent.length)
    else:
        target += header_size(operation.form, tag, extent.length)
    at[0] = target + extent.length
    frame.left += 1
    return WRITTEN


cdef Ending end_known(
    const TagsOperation *operation, const WriteFrame *frame, uint8_t **at, bint writing
) noexcept nogil:
    """Write the header of the known tagged field whose value ends here, and make room for it."""
    cdef int64_t tag = operation.known[frame.index - 1].tag
    cdef int reserved = likely_header(operation.form)
    cdef int64_t size = at[0] - frame.began - reserved
    cdef int header
    if operation.form == BUFFER and (size == 0 or tag > HIGHEST_TAG_IN_BUFFER):
        return REFUSED
    header = header_size(operation.form, tag, size)
    if writing:
        if header != reserved:
            memmove(frame.began + header, frame.began + reserved, size)
        put_header(frame.began, operation.form, tag, size)
    at[0] += header - reserved
    return WRITTEN


# The run of a program.

cdef inline Ending write_tag(Run *run, Place *place, bint writing) noexcept nogil:
    """Do the operation TAG: continue with one tagged field, or after all of them."""
    cdef const TagsOperation *operation = <const TagsOperation *> place.operation
    cdef const Column *column = column_at(run.columns, operation.column)
    cdef WriteFrame *frame = place.frame - 1
    cdef int64_t number = next_known(run.columns, operation, frame.index, place.index)
    cdef int64_t known_tag = NO_TAG
    cdef int64_t tag = unknown_tag(operation, frame, column)
    if number < operation.known_count:
        known_tag = operation.known[number].tag
    frame.index = number
    if tag < 0:
        return REFUSED
    if known_tag < tag:
        frame.index = number + 1
        frame.began = place.at
        place.at += likely_header(operation.form)
        place.operation = operation.known[number].value
        return WRITTEN
    if tag < NO_TAG:
        return write_unknown(run, operation, frame, tag, &place.at, writing)
    if operation.form == BUFFER:
        if writing:
            place.at[0] = 0
        place.at += 1
    place.frame = frame
    place.operation += 1
    return WRITTEN


cdef inline Ending enter_array(
    Run *run, Place *place, const Column *column, bint writing
) noexcept nogil:
    """Do the operation ARRAY or TABLE: continue with the first element, or after all of them."""
    cdef Operation *operation = place.operation
    cdef Extent items
    cdef Ending ending = write_count(
        operation, column, place.index, &place.at, writing, &items
    )
    if ending != WRITTEN:
        return ending
    if operation.code == TABLE and items.length > 0:
        ending = write_table(run, operation, &items, &place.at, writing)
        if ending == FULL:
            return FULL
        if ending == WRITTEN:
            items.length = 0
    if items.length == 0:
        place.operation = operation.after
        return WRITTEN
    place.frame.left, place.frame.index = items.length, place.index
    place.frame += 1
    place.index = items.begin
    place.operation += 1
    return WRITTEN


cdef inline Ending write_seldom(Run *run, Place *place, bint writing) noexcept nogil:
    """Do one operation that is rare in messages."""
    cdef Operation *operation = place.operation
    cdef const Column *column = column_at(run.columns, operation.column)
    cdef int64_t count
    cdef bint null
    cdef Ending ending
    if operation.code < STRING:
        ending = write_value(operation, column, place.index, &place.at, writing)
    elif operation.code == ARRAY or operation.code == TABLE:
        return enter_array(run, place, column, writing)
    elif operation.code == TAGS:
        ending = open_tags(
            run.columns, <const TagsOperation *> operation, place.frame, place.index, &place.at,
            writing, &count,
        )
        if ending == WRITTEN and count == 0:
            place.operation = operation.after
            return WRITTEN
        place.frame += 1
    elif operation.code == TAG:
        return write_tag(run, place, writing)
    elif operation.code == TAG_END:
        # This continues with TAG, which has the tags.
        place.operation = operation.after
        return end_known(
            <const TagsOperation *> place.operation, place.frame - 1, &place.at, writing
        )
    elif operation.code == MARKER:
        null = is_null(column, place.index)
        if writing:
            place.at[0] = (0 if operation.is_compact else 0xFF) if null else 1
        place.at += 1
        place.operation = operation.after if null else operation + 1
        return WRITTEN
    elif operation.code == CHECK:
        ending = REFUSED
        if are_defaults(
            run.columns, (<FillOperation *> operation).defaults,
            (<FillOperation *> operation).count, place.index,
        ):
            ending = WRITTEN
    else:
        return ROW_DONE if operation.code == END else REFUSED
    place.operation += 1
    return ending


cdef inline Ending write_common(Run *run, Place *place, bint writing) noexcept nogil:
    """Do the frequent operations: numbers, text, arrays of numbers, missing tagged fields."""
    cdef Column *columns = run.columns
    cdef Operation *operation = place.operation
    cdef WriteFrame *frame = place.frame
    cdef WriteFrame *outer
    cdef int64_t index = place.index
    cdef uint8_t *at = place.at
    cdef const Column *column
    cdef Ending ending
    while True:
        if writing and unlikely(run.limit - at < SLACK):
            ending = grow(run, at, SLACK)
            break
        column = column_at(columns, operation.column)
        if operation.code == NUMBERS:
            ending = REFUSED
            if write_numbers(columns, <const NumbersOperation *> operation, index, at, writing):
                ending = WRITTEN
            at += operation.width
        elif operation.code == BULK:
            ending = write_bulk(run, operation, column, index, &at, writing)
        elif operation.code == STRING:
            ending = write_text(run, operation, column, index, &at, writing, True)
        elif operation.code == BYTES:
            ending = write_text(run, operation, column, index, &at, writing, False)
        elif operation.code == NEXT:
            outer = frame - 1
            outer.left -= 1
            if outer.left > 0:
                operation = operation.after
                index += 1
            else:
                frame, index = outer, outer.index
                operation += 1
            continue
        elif (
            operation.code == TAGS and column.capacity == 0
            and (<const TagsOperation *> operation).known_count == 0
        ):
            if writing:
                at[0] = 0
            at += 1
            operation = operation.after
            continue
        else:
            ending = OTHER
            break
        if unlikely(ending != WRITTEN):
            break
        operation += 1
    place.operation, place.frame, place.index, place.at = operation, frame, index, at
    return ending


cdef inline Ending write_row(Run *run, int64_t row, uint8_t **at, bint writing) noexcept nogil:
    """Write a row; ``at`` becomes its end."""
    cdef Place place
    cdef Ending ending = WRITTEN
    if is_null(run.columns, row):
        return ROW_DONE
    place.operation = run.entries[run.which[row] if run.which != NULL else 0]
    place.frame, place.index, place.at = <WriteFrame *> run.stack, row, at[0]
    while ending == WRITTEN:
        ending = write_common(run, &place, writing)
        if ending == OTHER:
            ending = write_seldom(run, &place, writing)
    at[0] = place.at
    return ending


cdef inline Status write_rows(Run *run, bint writing) noexcept nogil:
    """Write or measure rows up to the last one, or until the output must grow."""
    cdef uint8_t *at
    cdef Ending ending
    while run.row < run.rows:
        at = run.out + run.written
        ending = write_row(run, run.row, &at, writing)
        if ending == FULL:
            return GROW_DATA
        if ending == REFUSED:
            at = run.out + run.written
            run.refused[run.row] = 1
        if writing:
            (<int32_t *> run.ends)[run.row - run.first + 1] = <int32_t> (at - run.out)
        else:
            (<int64_t *> run.ends)[run.row - run.first] = at - run.out - run.written
        run.written = at - run.out
        run.row += 1
    return DONE


def encode(size_t words):
    """Write the rows of a `Run`; return DONE, or GROW_DATA if the output must grow."""
    cdef Status status
    with nogil:
        status = write_rows(<Run *> words, True)
    return <int> status


def measure(size_t words):
    """Add up the sizes of the rows of a `Run` without writing them; return DONE."""
    cdef Status status
    with nogil:
        status = write_rows(<Run *> words, False)
    return <int> status
