"""Reads messages into columns: one kernel, driven by a program, for every message.

Each operation checks all it needs, of the input and of the room in the columns, before it changes
anything; so it can be run again once a column has grown. A row that is refused is taken back and
becomes null.
"""

from __future__ import annotations

from flexwire.kernels.columns.filling import (
    fill,
    grow_data,
    grow_level,
    mark,
    set_used,
    take_back,
    used,
)
from flexwire.kernels.columns.layout import (
    BETWEEN,
    C_BLANK,
    C_COLUMNS,
    C_DATA,
    C_END,
    C_ENTRIES,
    C_FIRST,
    C_FRAME,
    C_INDEX,
    C_LEVELS,
    C_OFFSETS,
    C_OPERATION,
    C_POSITION,
    C_REFUSE,
    C_REFUSED,
    C_ROW,
    C_ROWS,
    C_SIZE,
    C_STACK,
    C_STATUS,
    C_VALID,
    C_VALID_BIT,
    C_WHICH,
    C_WIDE,
    COLUMN,
    DONE,
    F_END,
    F_INDEX,
    F_KNOWN,
    F_LEFT,
    FRAME,
    FULL,
    K_CAPACITY,
    K_DATA,
    N_CAPACITY,
    N_COUNT,
    O_AFTER,
    O_CODE,
    O_COLUMN,
    O_COMPACT,
    O_COUNT,
    O_DEFAULTS,
    O_LEAST,
    O_LEVEL,
    O_NULLABLE,
    O_WIDTH,
    OPERATION,
    REFUSED,
    ROW_DONE,
    T_COUNT,
    T_DEFAULTS,
    T_TAG,
    T_VALUE,
)
from flexwire.kernels.columns.reading_numbers import read_numbers, read_table
from flexwire.kernels.columns.reading_tags import (
    end_tags,
    keep_unknown,
    next_known,
    next_tag,
    open_tags,
    took_tag,
)
from flexwire.kernels.columns.stack import next_element
from flexwire.kernels.columns.uuid_text import UUID_TEXT, write_uuid_text
from flexwire.kernels.machine import (
    kernel,
    load_int32_native,
    load_uint8,
    load_uint16,
    load_uint32,
    load_word,
    part,
    store_int8,
    store_word,
)
from flexwire.kernels.memory import (
    copy_bytes,
    inlined,
    seldom,
    store_int32_native,
    store_native,
)
from flexwire.kernels.wire.lengths import STRING_WIDTH, WIDTH, read_length
from flexwire.kernels.wire.numbers import UUID_SIZE, fixed_size, load_number, turn_numbers, turn_two
from flexwire.kernels.wire.operations import (
    ARRAY,
    BULK,
    BYTES,
    END,
    FILL,
    JUMP,
    MARKER,
    NEXT,
    NUMBERS,
    STRING,
    TABLE,
    TAG,
    TAG_END,
    TAGS,
    UINT16,
    UUID,
    WIDENED,
)
from flexwire.kernels.wire.text import HIGH_BITS, is_utf8
from flexwire.wire.limits import LONGEST_STRING


@inlined
def take_length(operation: int, width: int, position: int, end: int) -> tuple[int, int]:
    """Read a length or count, as the operation says it stands."""
    compact, nullable = load_word(operation + O_COMPACT), load_word(operation + O_NULLABLE)
    return read_length(compact, nullable, width, position, end)


@inlined
def read_text(  # noqa: PLR0917 - a kernel has no keyword arguments
    call: int, operation: int, column: int, index: int, position: int, end: int, is_string: bool
) -> int:
    """Read a string or bytes."""
    length, at = take_length(operation, STRING_WIDTH if is_string else WIDTH, position, end)
    if at < 0 or length > end - at:
        seldom()
        return REFUSED
    before = used(column, index)
    room = load_word(column + K_CAPACITY) - before
    if is_string and (length - 8) | (16 - length) | (room - length) >= 0:
        first, last = load_word(at), load_word(at + length - 8)
        if (first | last) & HIGH_BITS == 0:
            target = load_word(column + K_DATA) + before
            store_word(target, first)
            store_word(target + length - 8, last)
            set_used(column, index, before + length)
            mark(column, index, 1)
            return at + length
    if is_string and (length > LONGEST_STRING or not is_utf8(at, length)):
        seldom()
        return REFUSED
    valid = 1
    if length < 0:
        length = valid = 0
    if length > room:
        seldom()
        return grow_data(call, column, before + length)
    copy_bytes(load_word(column + K_DATA) + before, at, length)
    set_used(column, index, before + length)
    mark(column, index, valid)
    return at + length


@part
def read_uuid(call: int, column: int, index: int, position: int, end: int) -> int:
    """Read a uuid, as text."""
    if end - position < UUID_SIZE:
        return REFUSED
    before = used(column, index)
    if load_word(column + K_CAPACITY) - before < UUID_TEXT:
        return grow_data(call, column, before + UUID_TEXT)
    write_uuid_text(load_word(column + K_DATA) + before, position)
    set_used(column, index, before + UUID_TEXT)
    mark(column, index, 1)
    return position + UUID_SIZE


@part
def read_widened(operation: int, column: int, index: int, position: int, end: int) -> int:
    """Read a number into a column that is wider than its type needs."""
    code = load_word(operation + O_LEAST)
    size = fixed_size(code)
    if size > end - position:
        return REFUSED
    width = load_word(operation + O_WIDTH)
    store_native(load_word(column + K_DATA) + width * index, width, load_number(code, position))
    return position + size


@inlined
def read_value(call: int, operation: int, column: int, index: int, position: int, end: int) -> int:
    """Read a uuid, or a number that is wider in its column; gives the position after it."""
    code = load_word(operation + O_CODE)
    if code == UUID:
        return read_uuid(call, column, index, position, end)
    if code == WIDENED:
        return read_widened(operation, column, index, position, end)
    left, data = end - position, load_word(column + K_DATA)
    if code == UINT16:
        if left < 2:
            return REFUSED
        store_int32_native(data + 4 * index, load_uint16(position))
        return position + 2
    if left < 4:
        return REFUSED
    store_word(data + 8 * index, load_uint32(position))
    return position + 4


@inlined
def read_array(
    call: int, operation: int, column: int, index: int, position: int, end: int
) -> tuple[int, int]:
    """Read an array's count, and make room for its elements; gives the count."""
    count, at = take_length(operation, WIDTH, position, end)
    if at < 0 or count * load_word(operation + O_LEAST) > end - at:
        return 0, REFUSED
    level = load_word(call + C_LEVELS) + load_word(operation + O_LEVEL)
    before = load_word(level + N_COUNT)
    if count > load_word(level + N_CAPACITY) - before:
        return 0, grow_level(call, level, before + count)
    valid = 1
    if count < 0:
        count = valid = 0
    store_word(level + N_COUNT, before + count)
    set_used(column, index, before + count)
    mark(column, index, valid)
    return count, at


@inlined
def read_bulk(call: int, operation: int, column: int, index: int, position: int, end: int) -> int:
    """Read an array of numbers, all at once; a few of four bytes, such as replicas, right here."""
    count, at = take_length(operation, WIDTH, position, end)
    level = load_word(call + C_LEVELS) + load_word(operation + O_LEVEL)
    before = load_word(level + N_COUNT)
    room = load_word(level + N_CAPACITY) - before
    if (
        load_word(operation + O_WIDTH) == 4
        and at | count | (4 - count) | (end - at - 16) | (room - 4) >= 0
    ):
        data = load_word(column + COLUMN + K_DATA)
        # There is room for more, which what follows writes over.
        turn_two(data + 4 * before, at)
        turn_two(data + 4 * before + 8, at + 8)
        store_word(level + N_COUNT, before + count)
        set_used(column, index, before + count)
        mark(column, index, 1)
        return at + 4 * count
    seldom()
    return read_many(call, operation, column, index, position, end)


@part
def read_many(call: int, operation: int, column: int, index: int, position: int, end: int) -> int:
    """Read an array of any numbers, however many."""
    count, at = read_array(call, operation, column, index, position, end)
    if at < 0:
        return at
    width, before = load_word(operation + O_WIDTH), used(column, index)
    data = load_word(column + COLUMN + K_DATA)
    turn_numbers(data + before * width, at, count, width)
    return at + count * width


@inlined
def read_marker(operation: int, column: int, index: int, position: int, end: int) -> int:
    """Read whether a structure is null; gives 1 if it is, 0 if not, -1 for what says neither."""
    if end - position < 1:
        return REFUSED
    marker = load_uint8(position)
    null = 0 if load_word(operation + O_COMPACT) else 0xFF
    if marker != 1 and marker != null:
        return REFUSED
    mark(column, index, 1)
    return 1 if marker == null else 0


@inlined
def open_row(call: int, row: int) -> tuple[int, int, int]:
    """Give where a row's program begins, and where its message begins and ends."""
    valid, bit = load_word(call + C_VALID), load_word(call + C_VALID_BIT) + row
    if valid != 0 and (load_uint8(valid + (bit >> 3)) >> (bit & 7)) & 1 == 0:
        seldom()
        return load_word(call + C_BLANK), 0, 0
    data, offsets = load_word(call + C_DATA), load_word(call + C_OFFSETS)
    if load_word(call + C_WIDE):
        begin, end = load_word(offsets + 8 * row), load_word(offsets + 8 * row + 8)
    else:
        begin = load_int32_native(offsets + 4 * row)
        end = load_int32_native(offsets + 4 * row + 4)
    if begin < 0 or begin > end or end > load_word(call + C_SIZE):
        seldom()
        return load_word(call + C_REFUSE), 0, 0
    which = load_word(call + C_WHICH)
    version = load_int32_native(which + 4 * row) if which else 0
    return load_word(load_word(call + C_ENTRIES) + 8 * version), data + begin, data + end


@inlined
def read_common(  # noqa: PLR0917 - a kernel has no keyword arguments
    call: int, columns: int, operation: int, frame: int, index: int, position: int, end: int
) -> tuple[int, int, int, int, int]:
    """Read what most of a message is: numbers, text, arrays of numbers, no tagged fields."""
    while True:
        code = load_word(operation + O_CODE)
        column = columns + load_word(operation + O_COLUMN)
        if code == NUMBERS:
            at = read_numbers(operation, columns, index, position, end)
        elif code == BULK:
            at = read_bulk(call, operation, column, index, position, end)
        elif code == STRING:
            at = read_text(call, operation, column, index, position, end, True)
        elif code == BYTES:
            at = read_text(call, operation, column, index, position, end, False)
        elif code == NEXT:
            operation, frame, index = next_element(operation, frame, index)
            continue
        elif code == TAGS and position < end and load_uint8(position) == 0:
            # None of them: mostly so.
            end_tags(call, operation, column, index)
            position += 1
            operation = load_word(operation + O_AFTER)
            if position == end and load_word(operation + O_CODE) == END:
                return operation, frame, index, position, ROW_DONE
            continue
        else:
            seldom()
            return operation, frame, index, position, 0
        if at < 0:
            seldom()
            return operation, frame, index, position, at
        position = at
        operation += OPERATION


@kernel
def decode(call: int, _structure: int, _value: int) -> int:
    """Read rows from C_ROW to C_ROWS; stops where a column must grow, and goes on from there.

    ``call`` is the address of the words of the run. An operation that cannot go on leaves all as it
    was, and says in ``at`` why.
    """
    columns, first = load_word(call + C_COLUMNS), load_word(call + C_FIRST)
    row, rows = load_word(call + C_ROW), load_word(call + C_ROWS)
    operation = load_word(call + C_OPERATION)
    position, end = load_word(call + C_POSITION), load_word(call + C_END)
    frame, index = load_word(call + C_FRAME), load_word(call + C_INDEX)
    at = 0
    while row < rows and at != FULL:
        if operation == BETWEEN:
            index, frame = row - first, load_word(call + C_STACK)
            operation, position, end = open_row(call, row)
        while True:
            operation, frame, index, position, at = read_common(
                call, columns, operation, frame, index, position, end
            )
            if at == ROW_DONE and row + 1 < rows:
                row += 1
                index += 1
                frame = load_word(call + C_STACK)
                operation, position, end = open_row(call, row)
                continue
            if at < 0:
                break
            code = load_word(operation + O_CODE)
            column = columns + load_word(operation + O_COLUMN)
            if code < ARRAY:
                at = read_value(call, operation, column, index, position, end)
                if at < 0:
                    break
                position = at
                operation += OPERATION
            elif code == ARRAY or code == TABLE:
                left, at = read_array(call, operation, column, index, position, end)
                if at < 0:
                    break
                position = at
                if code == TABLE and left > 0:
                    at = read_table(call, operation, used(column, index), left, position)
                    if at >= 0:
                        left, position = 0, at
                if left == 0:
                    operation = load_word(operation + O_AFTER)
                else:
                    store_word(frame + F_LEFT, left)
                    store_word(frame + F_INDEX, index)
                    frame += FRAME
                    index = used(column, index)
                    operation += OPERATION
            elif code == TAGS:
                at = open_tags(operation, frame, position, end)
                if at < 0:
                    break
                position = at
                frame += FRAME
                operation += OPERATION
            elif code == TAG:
                top = frame - FRAME
                tag, size, at = next_tag(operation, top, position, end)
                if at < 0:
                    break
                known = next_known(operation, top)
                if known != 0 and (tag < 0 or load_word(known + T_TAG) < tag):
                    # A known field that is not there; the header is read again after it.
                    defaults, count = load_word(known + T_DEFAULTS), load_word(known + T_COUNT)
                    at = fill(call, defaults, count, index)
                    if at < 0:
                        break
                    store_word(top + F_KNOWN, load_word(top + F_KNOWN) + 1)
                elif tag < 0:
                    end_tags(call, operation, column, index)
                    position = at
                    frame = top
                    operation += OPERATION
                elif known != 0 and load_word(known + T_TAG) == tag:
                    took_tag(top, tag)
                    store_word(top + F_KNOWN, load_word(top + F_KNOWN) + 1)
                    position, end = at, at + size
                    operation = load_word(known + T_VALUE)
                else:
                    at = keep_unknown(call, operation, column, tag, size, at)
                    if at < 0:
                        break
                    took_tag(top, tag)
                    position = at
            elif code == TAG_END:
                at = REFUSED
                if position != end:
                    break
                end = load_word(frame - FRAME + F_END)
                operation = load_word(operation + O_AFTER)
            elif code == MARKER:
                at = read_marker(operation, column, index, position, end)
                if at < 0:
                    break
                position += 1
                operation = load_word(operation + O_AFTER) if at else operation + OPERATION
            elif code == FILL:
                defaults, count = load_word(operation + O_DEFAULTS), load_word(operation + O_COUNT)
                at = fill(call, defaults, count, index)
                if at < 0:
                    break
                operation += OPERATION
            elif code == JUMP:
                operation = load_word(operation + O_AFTER)
            else:
                at = ROW_DONE if code == END and position == end else REFUSED
                break
        if at == ROW_DONE:
            row += 1
            operation = BETWEEN
        elif at == REFUSED:
            index = row - first
            take_back(call, index)
            store_int8(load_word(call + C_REFUSED) + row, 1)
            frame = load_word(call + C_STACK)
            operation, position, end = load_word(call + C_BLANK), 0, 0
    store_word(call + C_ROW, row)
    store_word(call + C_OPERATION, operation)
    store_word(call + C_POSITION, position)
    store_word(call + C_END, end)
    store_word(call + C_FRAME, frame)
    store_word(call + C_INDEX, index)
    return load_word(call + C_STATUS) if at == FULL else DONE
