"""Reads messages into columns: one kernel for all messages, controlled by a program.

The input is the address of a `Run`: a program (`columns.pxd`), a binary column of messages, and
columns with room. Each operation checks that it has everything it needs, both input and room,
before it changes anything. An operation can therefore run again after a column has grown. If the
kernel refuses a row, the row is undone and becomes null. The caller then lets the reference
executor read it.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

# The definitions for this file: a program and its columns, and the primitives for reading.
from flexwire.kernels.columns cimport *
from flexwire.kernels.cursor cimport *

cdef extern from "text.h" nogil:
    const uint64_t HIGH_BITS
    bint is_utf8(const uint8_t *at, int64_t size)
    void write_uuid_text(uint8_t *target, const uint8_t *source)

# How an operation ended. FULL means that it has changed nothing.
cdef enum Ending:
    READ, REFUSED, FULL, ROW_DONE, OTHER


# Putting values into columns.

cdef inline void mark(Column *column, int64_t index, int8_t valid) noexcept nogil:
    """Record whether a value exists, if its column may have nulls."""
    if column.valid != NULL:
        column.valid[index] = valid


cdef Ending grow_level(Run *run, Level *level, int64_t need) noexcept nogil:
    """Request room for ``need`` elements of a level."""
    run.status, run.need = GROW_LEVEL, need
    run.grow = <char *> level - <char *> run.levels
    return FULL


cdef Ending grow_data(Run *run, Column *column, int64_t need) noexcept nogil:
    """Request room for ``need`` bytes of a column of text."""
    run.status, run.need = GROW_DATA, need
    run.grow = column - run.columns
    return FULL


cdef inline Ending put_text(
    Run *run, Column *column, int64_t index, const uint8_t *at, int64_t size, bint valid
) noexcept nogil:
    """Put a text into a column, if the column has room."""
    cdef int32_t before = column.offsets[index]
    if unlikely(size > column.capacity - before):
        return grow_data(run, column, before + size)
    copy_text(column.data + before, at, size)
    column.offsets[index + 1] = before + <int32_t> size
    mark(column, index, valid)
    return READ


cdef Ending fill(Run *run, const Default *default, int64_t count, int64_t index) noexcept nogil:
    """Put defaults into their columns."""
    cdef Column *column
    cdef int64_t _
    for _ in range(count):
        column = column_at(run.columns, default.column)
        if default.kind == NUMBER or default.kind == NULL_NUMBER:
            store_native(column.data + column.width * index, column.width, default.value)
            mark(column, index, default.kind == NUMBER)
        elif default.kind == TEXT or default.kind == NO_TEXT:
            if put_text(
                run, column, index, <const uint8_t *> <size_t> default.value, default.length,
                default.kind == TEXT,
            ) == FULL:
                return FULL
        elif default.kind == NO_ITEMS or default.kind == NULL_ITEMS:
            column.offsets[index + 1] = <int32_t> level_at(run, default.level).count
            mark(column, index, default.kind == NO_ITEMS)
        else:
            mark(column, index, default.kind == PRESENT)
        default += 1
    return READ


cdef void take_back(Run *run, int64_t index) noexcept nogil:
    """Remove the elements of the row at ``index``. The row before shows how many there were."""
    cdef const Branch *branch
    cdef Level *items
    cdef int64_t number
    run.levels.start = index
    for number in range(run.branch_count):
        branch = &run.branches[number]
        items = level_at(run, branch.items)
        items.start = column_at(run.columns, branch.column).offsets[
            level_at(run, branch.level).start
        ]
        items.count = items.start


# Values.

cdef inline Ending read_text(
    Run *run, const Operation *operation, Column *column, int64_t index, Cursor *cursor,
    bint is_string
) noexcept nogil:
    """Read a string or bytes."""
    cdef Cursor rest = cursor[0]
    cdef const uint8_t *at
    cdef int64_t length
    cdef uint64_t first, last
    cdef int32_t before
    cdef Ending ending
    if unlikely(
        not read_length(
            &rest, operation.is_compact, operation.is_nullable,
            STRING_WIDTH if is_string else WIDTH, &length,
        )
        or length > left(&rest)
    ):
        return REFUSED
    at = rest.at
    before = column.offsets[index]
    if is_string and 8 <= length <= 16 and length <= column.capacity - before:
        memcpy(&first, at, 8)
        memcpy(&last, at + length - 8, 8)
        if likely(not (first | last) & HIGH_BITS):
            memcpy(column.data + before, &first, 8)
            memcpy(column.data + before + length - 8, &last, 8)
            column.offsets[index + 1] = before + <int32_t> length
            mark(column, index, True)
            cursor.at = at + length
            return READ
    if is_string and unlikely(length > LONGEST_STRING or not is_utf8(at, length)):
        return REFUSED
    ending = put_text(run, column, index, at, max(length, 0), length >= 0)
    if likely(ending == READ):
        cursor.at = at + max(length, 0)
    return ending


cdef Ending read_uuid(Run *run, Column *column, int64_t index, Cursor *cursor) noexcept nogil:
    """Read a uuid, which is stored as text."""
    cdef int32_t before = column.offsets[index]
    if left(cursor) < UUID_SIZE:
        return REFUSED
    if column.capacity - before < UUID_TEXT:
        return grow_data(run, column, before + UUID_TEXT)
    write_uuid_text(column.data + before, cursor.at)
    cursor.at += UUID_SIZE
    column.offsets[index + 1] = before + UUID_TEXT
    mark(column, index, True)
    return READ


cdef inline Ending read_value(
    Run *run, const Operation *operation, Column *column, int64_t index, Cursor *cursor
) noexcept nogil:
    """Read a uuid, or a number whose column is wider."""
    cdef const uint8_t *at
    cdef int64_t kind = operation.code
    cdef int64_t width = 4 if kind == UINT16 else 8
    if kind == UUID:
        return read_uuid(run, column, index, cursor)
    if kind == WIDENED:
        kind, width = operation.least, operation.width
    at = take(cursor, width_of(kind))
    if unlikely(at == NULL):
        return REFUSED
    store_native(column.data + width * index, width, load_number(kind, at))
    return READ


cdef inline Ending read_marker(
    const Operation *operation, Column *column, int64_t index, Cursor *cursor, bint *is_null
) noexcept nogil:
    """Read whether a structure is null."""
    cdef uint8_t null = 0 if operation.is_compact else 0xFF
    cdef const uint8_t *at = take(cursor, 1)
    if at == NULL or (at[0] != 1 and at[0] != null):
        return REFUSED
    mark(column, index, True)
    is_null[0] = at[0] == null
    return READ


# Adjacent numbers, and arrays of structures with only numbers.

cdef inline Ending read_numbers(
    Column *columns, const NumbersOperation *operation, int64_t index, Cursor *cursor
) noexcept nogil:
    """Read adjacent numbers, each with the width of its column."""
    cdef const uint8_t *at = take(cursor, operation.width)
    cdef const NumberRow *row = operation.ints
    cdef Column *column
    if unlikely(at == NULL):
        return REFUSED
    while row < operation.shorts:
        (<int32_t *> column_at(columns, row.column).data)[index] = load_int32(at + row.place)
        row += 1
    while row < operation.longs:
        (<int16_t *> column_at(columns, row.column).data)[index] = load_int16(at + row.place)
        row += 1
    while row < operation.others:
        (<int64_t *> column_at(columns, row.column).data)[index] = load_int64(at + row.place)
        row += 1
    while row < operation.end:
        column = column_at(columns, row.column)
        if row.kind == VALID:
            mark(column, index, True)
        elif row.kind == BOOL and at[row.place] > 1:
            return REFUSED
        else:
            column.data[index] = at[row.place]
        row += 1
    return READ


cdef inline void spread_numbers(
    int64_t kind, uint8_t *data, int64_t count, const uint8_t *at, int64_t stride
) noexcept nogil:
    """Read a column of a table."""
    cdef int64_t number
    if kind == INT32:
        for number in range(count):
            (<int32_t *> data)[number] = load_int32(at + stride * number)
    elif kind == INT16:
        for number in range(count):
            (<int16_t *> data)[number] = load_int16(at + stride * number)
    elif kind == BOOL or kind == INT8:
        for number in range(count):
            data[number] = at[stride * number]
    else:
        for number in range(count):
            (<int64_t *> data)[number] = load_int64(at + stride * number)


cdef inline uint8_t all_bits(const uint8_t *at, int64_t count, int64_t stride) noexcept nogil:
    """Return all bits that are set in bytes at regular distances."""
    cdef uint8_t bits = 0
    cdef int64_t number
    for number in range(count):
        bits |= at[stride * number]
    return bits


cdef inline int width_in_column(int64_t kind) noexcept nogil:
    """Return the number of bytes of a number in its column."""
    return 4 if kind == INT32 else 2 if kind == INT16 else 1 if kind <= INT8 else 8


cdef bint read_table(
    Run *run, const Operation *operation, int64_t first, int64_t count, Cursor *cursor
) noexcept nogil:
    """Read an array of structures with only numbers, column by column.

    The elements begin at ``first`` in their columns, for which there is room, and the input has all
    their bytes. Returns False if an element has a tagged field, or a bool that is neither 0 nor 1.
    The elements must then be read one by one.
    """
    cdef const NumbersOperation *numbers = <const NumbersOperation *> (operation + 1)
    cdef const TagsOperation *tags = <const TagsOperation *> (operation + 2)
    cdef const NumberRow *row = numbers.ints
    cdef int64_t stride = operation.width
    cdef const uint8_t *at = cursor.at
    cdef Column *column
    cdef int64_t index
    if tags.code == TAGS:
        if all_bits(at + stride - 1, count, stride):
            return False
        column = column_at(run.columns, tags.column)
        for index in range(first, first + count):
            column.offsets[index + 1] = <int32_t> level_at(run, tags.level).count
    while row < numbers.end:
        column = column_at(run.columns, row.column)
        if row.kind == VALID:
            for index in range(first, first + count):
                mark(column, index, True)
        elif row.kind == BOOL and all_bits(at + row.place, count, stride) > 1:
            return False
        else:
            spread_numbers(
                row.kind, column.data + width_in_column(row.kind) * first, count, at + row.place, stride
            )
        row += 1
    cursor.at = at + stride * count
    return True


# Arrays.

cdef inline Ending read_array(
    Run *run, const Operation *operation, Column *column, int64_t index, Cursor *cursor,
    int64_t *count
) noexcept nogil:
    """Read the number of an array's elements, and make room for them; 0 for a null array."""
    cdef Level *level = level_at(run, operation.level)
    cdef Cursor rest = cursor[0]
    if unlikely(
        not read_length(&rest, operation.is_compact, operation.is_nullable, WIDTH, count)
        or count[0] * operation.least > left(&rest)
    ):
        return REFUSED
    if unlikely(count[0] > level.capacity - level.count):
        return grow_level(run, level, level.count + count[0])
    mark(column, index, count[0] >= 0)
    count[0] = max(count[0], 0)
    level.count += count[0]
    column.offsets[index + 1] = <int32_t> level.count
    cursor.at = rest.at
    return READ


cdef inline Ending read_bulk(
    Run *run, const Operation *operation, Column *column, int64_t index, Cursor *cursor
) noexcept nogil:
    """Read an array of numbers in one step."""
    cdef int64_t count
    cdef Ending ending = read_array(run, operation, column, index, cursor, &count)
    cdef uint8_t *data = column[1].data + column.offsets[index] * operation.width
    if unlikely(ending != READ):
        return ending
    if operation.width == 4:
        spread_numbers(INT32, data, count, cursor.at, 4)
    elif operation.width == 8:
        spread_numbers(UUID, data, count, cursor.at, 8)
    elif operation.width == 2:
        spread_numbers(INT16, data, count, cursor.at, 2)
    else:
        memcpy(data, cursor.at, count)
    cursor.at += count * operation.width
    return READ


# Tagged fields.

cdef inline void end_tags(Run *run, const TagsOperation *operation, int64_t index) noexcept nogil:
    """Finish the unknown tagged fields of a structure."""
    column_at(run.columns, operation.column).offsets[index + 1] = (
        <int32_t> level_at(run, operation.level).count
    )


cdef inline Ending open_tags(
    const TagsOperation *operation, Frame *frame, Cursor *cursor
) noexcept nogil:
    """Read the number of tagged fields, and put it on the stack."""
    cdef uint64_t count = 0
    if operation.form != BUFFER:
        if not read_varint(cursor, &count) or <int64_t> count > left(cursor):
            return REFUSED
    frame.left, frame.index, frame.end, frame.tag = <int64_t> count, 0, cursor.end, -1
    return READ


cdef inline bint read_tag_header(
    int64_t form, Cursor *cursor, int64_t *tag, int64_t *size
) noexcept nogil:
    """Read the tag and the size of a tagged field; the tag is -1 at the end of a buffer."""
    cdef uint64_t number
    cdef Number header
    cdef const uint8_t *at
    if form == INTERLEAVED:
        header = read_groups(cursor.at, cursor.end, VARLONG_GROUPS, VARLONG_LAST)
        tag[0], size[0] = gather(header.value >> 1), gather(header.value)
        cursor.at = header.after
        return header.after != NULL
    if not read_varint(cursor, &number):
        return False
    if form == BUFFER:
        size[0], tag[0] = signed(number), -1
        if size[0] == 0:
            return True
        at = take(cursor, 2)
        if size[0] < 0 or at == NULL:
            return False
        tag[0] = load_int16(at)
        return tag[0] >= 0
    tag[0] = <int64_t> number
    if not read_varint(cursor, &number):
        return False
    size[0] = <int64_t> number
    return True


cdef inline Ending next_tag(
    const TagsOperation *operation, const Frame *frame, Cursor *cursor, int64_t *tag, int64_t *size
) noexcept nogil:
    """Read the header of the next tagged field; the tag is -1 if there is none."""
    tag[0], size[0] = -1, 0
    if operation.form != BUFFER and frame.left <= 0:
        return READ
    if not read_tag_header(operation.form, cursor, tag, size):
        return REFUSED
    if tag[0] > HIGHEST_TAG or size[0] > left(cursor) or 0 <= tag[0] <= frame.tag:
        return REFUSED
    return READ


cdef Ending keep_unknown(
    Run *run, const TagsOperation *operation, int64_t tag, const uint8_t *at, int64_t size
) noexcept nogil:
    """Store an unknown tagged field.

    Its tag is two columns from here, and its bytes come after it.
    """
    cdef Column *column = column_at(run.columns, operation.column)
    cdef Level *level = level_at(run, operation.level)
    cdef int64_t number
    for number in range(operation.refused_count):
        if operation.refused[number] == tag:
            return REFUSED
    if level.count >= level.capacity:
        return grow_level(run, level, level.count + 1)
    if put_text(run, &column[3], level.count, at, size, True) == FULL:
        return FULL
    (<int64_t *> column[2].data)[level.count] = tag
    level.count += 1
    return READ


# The run of a program.

# The position of a run, copied to local variables so that it stays in registers.
cdef struct Place:
    Operation *operation
    Frame *frame
    int64_t index
    Cursor cursor


cdef inline Ending read_tag(Run *run, Place *place) noexcept nogil:
    """Do the operation TAG: continue with one tagged field, or after all of them."""
    cdef TagsOperation *operation = <TagsOperation *> place.operation
    cdef Frame *frame = place.frame - 1
    cdef Cursor cursor = place.cursor
    cdef const KnownTag *field = NULL
    cdef int64_t tag, size
    cdef Ending ending = next_tag(operation, frame, &cursor, &tag, &size)
    if ending != READ:
        return ending
    if frame.index < operation.known_count:
        field = &operation.known[frame.index]
    if field != NULL and (tag < 0 or field.tag < tag):
        # This known field is missing. The header is read again after it.
        ending = fill(run, field.defaults, field.count, place.index)
        frame.index += ending == READ
    elif tag < 0:
        end_tags(run, operation, place.index)
        place.cursor, place.frame = cursor, frame
        place.operation += 1
    elif field != NULL and field.tag == tag:
        frame.left, frame.tag, frame.index = frame.left - 1, tag, frame.index + 1
        place.operation = field.value
        place.cursor.at, place.cursor.end = cursor.at, cursor.at + size
    else:
        ending = keep_unknown(run, operation, tag, cursor.at, size)
        if ending == READ:
            frame.left, frame.tag = frame.left - 1, tag
            place.cursor.at = cursor.at + size
    return ending


cdef inline Ending enter_array(Run *run, Place *place, Column *column) noexcept nogil:
    """Do the operation ARRAY or TABLE: continue with the first element, or after all of them."""
    cdef Operation *operation = place.operation
    cdef int64_t count
    cdef Ending ending = read_array(run, operation, column, place.index, &place.cursor, &count)
    if ending != READ:
        return ending
    if operation.code == TABLE and count > 0:
        if read_table(run, operation, column.offsets[place.index], count, &place.cursor):
            count = 0
    if count == 0:
        place.operation = operation.after
        return READ
    place.frame.left, place.frame.index = count, place.index
    place.frame += 1
    place.index = column.offsets[place.index]
    place.operation += 1
    return READ


cdef Ending read_seldom(Run *run, Place *place) noexcept nogil:
    """Do one operation that is rare in messages."""
    cdef Operation *operation = place.operation
    cdef Column *column = column_at(run.columns, operation.column)
    cdef bint is_null = False
    cdef Ending ending = READ
    if operation.code < STRING:
        ending = read_value(run, operation, column, place.index, &place.cursor)
    elif operation.code == ARRAY or operation.code == TABLE:
        return enter_array(run, place, column)
    elif operation.code == TAGS:
        ending = open_tags(<TagsOperation *> operation, place.frame, &place.cursor)
        place.frame += 1
    elif operation.code == TAG:
        return read_tag(run, place)
    elif operation.code == TAG_END:
        if place.cursor.at != place.cursor.end:
            return REFUSED
        place.cursor.end = (place.frame - 1).end
        place.operation = operation.after
        return READ
    elif operation.code == MARKER:
        ending = read_marker(operation, column, place.index, &place.cursor, &is_null)
        if is_null:
            place.operation = operation.after
            return READ
    elif operation.code == FILL:
        ending = fill(
            run, (<FillOperation *> operation).defaults, (<FillOperation *> operation).count,
            place.index,
        )
    elif operation.code == JUMP:
        place.operation = operation.after
        return READ
    elif operation.code == END and place.cursor.at == place.cursor.end:
        return ROW_DONE
    else:
        return REFUSED
    if ending == READ:
        place.operation += 1
    return ending


cdef inline Ending read_common(Run *run, Place *place) noexcept nogil:
    """Do the frequent operations: numbers, text, arrays of numbers, missing tagged fields."""
    cdef Column *columns = run.columns
    cdef Operation *operation = place.operation
    cdef Frame *frame = place.frame
    cdef Frame *outer
    cdef int64_t index = place.index
    cdef Cursor cursor = place.cursor
    cdef Column *column
    cdef Ending ending
    while True:
        column = column_at(columns, operation.column)
        if operation.code == NUMBERS:
            ending = read_numbers(columns, <NumbersOperation *> operation, index, &cursor)
        elif operation.code == BULK:
            ending = read_bulk(run, operation, column, index, &cursor)
        elif operation.code == STRING:
            ending = read_text(run, operation, column, index, &cursor, True)
        elif operation.code == BYTES:
            ending = read_text(run, operation, column, index, &cursor, False)
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
        elif operation.code == TAGS and cursor.at < cursor.end and cursor.at[0] == 0:
            # The usual case has no tagged fields.
            end_tags(run, <TagsOperation *> operation, index)
            cursor.at += 1
            operation = operation.after
            if cursor.at == cursor.end and operation.code == END:
                ending = ROW_DONE
                break
            continue
        else:
            ending = OTHER
            break
        if unlikely(ending != READ):
            break
        operation += 1
    place.operation, place.frame, place.index, place.cursor = operation, frame, index, cursor
    return ending


cdef inline void open_row(const Run *run, int64_t row, Place *place) noexcept nogil:
    """Go to the start of a row's program, and to the start of its message."""
    cdef int64_t begin, end
    cdef int64_t bit = run.valid_bit + row
    place.index, place.frame = row - run.first, run.stack
    place.cursor.at = place.cursor.end = NULL
    if run.valid != NULL and not run.valid[bit >> 3] >> (bit & 7) & 1:
        place.operation = run.blank
        return
    if run.is_wide:
        begin, end = (<const int64_t *> run.offsets)[row], (<const int64_t *> run.offsets)[row + 1]
    else:
        begin, end = (<const int32_t *> run.offsets)[row], (<const int32_t *> run.offsets)[row + 1]
    if unlikely(begin < 0 or begin > end or end > run.size):
        place.operation = run.refuse
        return
    place.operation = run.entries[run.which[row] if run.which != NULL else 0]
    place.cursor.at, place.cursor.end = run.data + begin, run.data + end


cdef Status read_rows(Run *run) noexcept nogil:
    """Read rows up to the last, or until a column must grow."""
    cdef Place place
    cdef Ending ending = READ
    place.operation, place.frame, place.index = run.operation, run.frame, run.index
    place.cursor.at, place.cursor.end = run.position, run.end
    while run.row < run.rows and ending != FULL:
        if place.operation == NULL:
            open_row(run, run.row, &place)
        ending = read_common(run, &place)
        if ending == OTHER:
            ending = read_seldom(run, &place)
        if ending == ROW_DONE:
            run.row += 1
            place.operation = NULL
        elif ending == REFUSED:
            place.index, place.frame = run.row - run.first, run.stack
            take_back(run, place.index)
            run.refused[run.row] = 1
            place.operation = run.blank
            place.cursor.at = place.cursor.end = NULL
    run.operation, run.frame, run.index = place.operation, place.frame, place.index
    run.position, run.end = place.cursor.at, place.cursor.end
    return <Status> run.status if ending == FULL else DONE


def decode(size_t words):
    """Read the rows of a `Run`; return how it ended: DONE, GROW_LEVEL or GROW_DATA."""
    cdef Status status
    with nogil:
        status = read_rows(<Run *> words)
    return <int> status
