"""Writes columns as messages, or measures what they would take: one kernel for every message.

Whatever is read is within its column: an offset is compared with what the column has before it is
used. A row has no state but its own, so it begins anew once the output has grown.
"""

from __future__ import annotations

from flexwire.kernels.columns.comparing import are_defaults, extent, is_null, is_within, span
from flexwire.kernels.columns.layout import (
    C_COLUMNS,
    C_ENDS,
    C_ENTRIES,
    C_FIRST,
    C_LIMIT,
    C_OUT,
    C_REFUSED,
    C_ROW,
    C_ROWS,
    C_STACK,
    C_WHICH,
    C_WRITTEN,
    COLUMN,
    DONE,
    F_BEGAN,
    F_INDEX,
    F_KNOWN,
    F_LEFT,
    FRAME,
    FULL,
    GROW_DATA,
    K_CAPACITY,
    K_DATA,
    K_VALID,
    K_WIDTH,
    KNOWN,
    O_AFTER,
    O_CODE,
    O_COLUMN,
    O_COMPACT,
    O_COUNT,
    O_DEFAULTS,
    O_FORM,
    O_KNOWN,
    O_KNOWNS,
    O_LEAST,
    O_NULLABLE,
    O_WIDTH,
    OPERATION,
    REFUSED,
    T_TAG,
    T_VALUE,
)
from flexwire.kernels.columns.output import SLACK, grow_output
from flexwire.kernels.columns.stack import next_element
from flexwire.kernels.columns.uuid_text import UUID_TEXT, read_uuid_text
from flexwire.kernels.columns.writing_numbers import write_numbers, write_table
from flexwire.kernels.columns.writing_tags import (
    NO_TAG,
    unknown_tag,
    write_tag_count,
    write_tag_header,
    write_tags_end,
    write_unknown,
    written_known,
)
from flexwire.kernels.machine import (
    kernel,
    load_int32_native,
    load_word,
    part,
    store_int8,
    store_int64,
    store_word,
)
from flexwire.kernels.memory import (
    copy_bytes,
    inlined,
    load_native,
    seldom,
    store_int32_native,
)
from flexwire.kernels.wire.lengths import NULL, STRING_WIDTH, WIDTH, put_length
from flexwire.kernels.wire.numbers import (
    UUID_SIZE,
    fixed_size,
    is_in_range,
    store_number,
    turn_numbers,
    turn_two,
)
from flexwire.kernels.wire.operations import (
    ARRAY,
    BULK,
    BYTES,
    CHECK,
    END,
    MARKER,
    NEXT,
    NUMBERS,
    STRING,
    TABLE,
    TAG,
    TAG_END,
    TAGS,
    UUID,
    WIDENED,
)
from flexwire.kernels.wire.tags import likely_header
from flexwire.kernels.wire.text import HIGH_BITS, is_utf8
from flexwire.wire.limits import LONGEST_STRING

# What there is room for after any length, as each operation has `SLACK`.
_AT_ONCE = 48


@part
def has_null(column: int, first: int, count: int) -> bool:
    """Whether an element of an array is null."""
    for index in range(first, first + count):
        if is_null(column, index):
            return True
    return False


@inlined
def write_length(operation: int, width: int, length: int, at: int, writing: bool) -> int:
    """Write a length or count, as the operation says it stands."""
    return put_length(at, load_word(operation + O_COMPACT), width, length, writing)


@inlined
def write_text(  # noqa: PLR0917 - a kernel has no keyword arguments
    call: int, operation: int, column: int, index: int, at: int, writing: bool, is_string: bool
) -> int:
    """Write a string or bytes."""
    width = STRING_WIDTH if is_string else WIDTH
    if is_null(column, index):
        if load_word(operation + O_NULLABLE):
            return write_length(operation, width, NULL, at, writing)
        seldom()
        return REFUSED
    # Not `extent`: its check for impossible lengths would cost a tenth of the time of sound ones.
    begin, end = span(column, index)
    length, text = end - begin, load_word(column + K_DATA) + begin
    if not is_within(column, begin, end):
        seldom()
        return REFUSED
    if is_string and (length - 8) | (16 - length) >= 0:
        first, last = load_word(text), load_word(text + length - 8)
        if (first | last) & HIGH_BITS == 0:
            at = write_length(operation, width, length, at, writing)
            if writing:
                store_word(at, first)
                store_word(at + length - 8, last)
            return at + length
    if is_string and (length > LONGEST_STRING or not is_utf8(text, length)):
        seldom()
        return REFUSED
    at = write_length(operation, width, length, at, writing)
    if writing:
        if length > _AT_ONCE and length > load_word(call + C_LIMIT) - at:
            seldom()
            return grow_output(call, at, length)
        copy_bytes(at, text, length)
    return at + length


@part
def write_uuid(column: int, index: int, at: int, writing: bool) -> int:
    """Write a uuid, which is text in its column."""
    begin, length = extent(column, index)
    if length != UUID_TEXT:
        return REFUSED
    high, low, sound = read_uuid_text(load_word(column + K_DATA) + begin)
    if not sound:
        return REFUSED
    if writing:
        store_int64(at, high)
        store_int64(at + 8, low)
    return at + UUID_SIZE


@part
def write_ranged(operation: int, column: int, index: int, at: int, writing: bool) -> int:
    """Write a number of a column that is wider than its type."""
    kind, width = load_word(operation + O_CODE), load_word(column + K_WIDTH)
    if kind == WIDENED:
        kind = load_word(operation + O_LEAST)
    value = load_native(load_word(column + K_DATA) + width * index, width)
    if not is_in_range(kind, value):
        return REFUSED
    return store_number(kind, at, value) if writing else at + fixed_size(kind)


@inlined
def write_value(operation: int, column: int, index: int, at: int, writing: bool) -> int:
    """Write a uuid, or a number that is wider in its column; gives the position after it."""
    if is_null(column, index):
        return REFUSED
    if load_word(operation + O_CODE) == UUID:
        return write_uuid(column, index, at, writing)
    return write_ranged(operation, column, index, at, writing)


@inlined
def write_array(
    operation: int, column: int, index: int, at: int, writing: bool
) -> tuple[int, int, int]:
    """Write an array's count; gives it, where the elements begin, and the position after it."""
    begin, count = extent(column, index)
    if is_null(column, index):
        count = NULL
        if not load_word(operation + O_NULLABLE):
            return 0, 0, REFUSED
    elif count < 0:
        return 0, 0, REFUSED
    return max(0, count), begin, write_length(operation, WIDTH, count, at, writing)


@inlined
def write_bulk(call: int, operation: int, column: int, index: int, at: int, writing: bool) -> int:
    """Write an array of numbers, all at once; a few of four bytes, such as replicas, right here."""
    items = column + COLUMN
    begin, end = span(column, index)
    count = end - begin
    if (
        load_word(operation + O_WIDTH) == 4
        and begin | count | (4 - count) | (load_word(column + K_CAPACITY) - begin - 4) >= 0
        and load_word(column + K_VALID) | load_word(items + K_VALID) == 0
    ):
        at = write_length(operation, WIDTH, count, at, writing)
        if writing:
            # There is room for more, which what follows writes over.
            source = load_word(items + K_DATA) + 4 * begin
            turn_two(at, source)
            turn_two(at + 8, source + 8)
        return at + 4 * count
    seldom()
    return write_many(call, operation, column, index, at, writing)


@part
def write_many(call: int, operation: int, column: int, index: int, at: int, writing: bool) -> int:
    """Write an array of any numbers, with nulls or not, however many."""
    count, begin, at = write_array(operation, column, index, at, writing)
    if at < 0 or count == 0:
        return at
    items, width = column + COLUMN, load_word(operation + O_WIDTH)
    if load_word(items + K_VALID) != 0 and has_null(items, begin, count):
        return REFUSED
    if writing:
        if count * width > load_word(call + C_LIMIT) - at:
            return grow_output(call, at, count * width)
        source = load_word(items + K_DATA) + begin * width
        turn_numbers(at, source, count, width)
    return at + count * width


@inlined
def write_common(  # noqa: PLR0917 - a kernel has no keyword arguments
    call: int, columns: int, operation: int, frame: int, index: int, at: int, writing: bool
) -> tuple[int, int, int, int]:
    """Write what most of a message is: numbers, text, arrays of numbers, no tagged fields."""
    limit = load_word(call + C_LIMIT)
    while True:
        if writing and limit - at < SLACK:
            seldom()
            return operation, frame, index, grow_output(call, at, SLACK)
        code = load_word(operation + O_CODE)
        column = columns + load_word(operation + O_COLUMN)
        if code == NUMBERS:
            done = write_numbers(operation, columns, index, at, writing)
        elif code == BULK:
            done = write_bulk(call, operation, column, index, at, writing)
        elif code == STRING:
            done = write_text(call, operation, column, index, at, writing, True)
        elif code == BYTES:
            done = write_text(call, operation, column, index, at, writing, False)
        elif code == NEXT:
            operation, frame, index = next_element(operation, frame, index)
            continue
        elif (
            code == TAGS
            and load_word(column + K_CAPACITY) == 0
            and load_word(operation + O_KNOWN) == 0
        ):
            if writing:
                store_int8(at, 0)
            at += 1
            operation = load_word(operation + O_AFTER)
            continue
        else:
            return operation, frame, index, at
        if done < 0:
            seldom()
            return operation, frame, index, done
        at = done
        operation += OPERATION


@inlined
def run(call: int, writing: bool) -> int:
    """Write or measure rows from C_ROW to C_ROWS; a negative ``at`` says why a row ends early."""
    columns, first = load_word(call + C_COLUMNS), load_word(call + C_FIRST)
    row, rows = load_word(call + C_ROW), load_word(call + C_ROWS)
    out = load_word(call + C_OUT)
    written = out + load_word(call + C_WRITTEN)
    at = written
    while row < rows and at != FULL:
        at, index, frame = written, row, load_word(call + C_STACK)
        which = load_word(call + C_WHICH)
        version = load_int32_native(which + 4 * row) if which else 0
        operation = load_word(load_word(call + C_ENTRIES) + 8 * version)
        going = not is_null(columns, row)
        while going:
            operation, frame, index, at = write_common(
                call, columns, operation, frame, index, at, writing
            )
            if at < 0:
                break
            code = load_word(operation + O_CODE)
            column = columns + load_word(operation + O_COLUMN)
            if code < ARRAY:
                at = write_value(operation, column, index, at, writing)
                if at < 0:
                    break
                operation += OPERATION
            elif code == ARRAY or code == TABLE:
                left, begin, at = write_array(operation, column, index, at, writing)
                if at < 0:
                    break
                if code == TABLE and left > 0:
                    done = write_table(call, operation, begin, left, at, writing)
                    if done == FULL:
                        at = FULL
                        break
                    if done >= 0:
                        left, at = 0, done
                if left == 0:
                    operation = load_word(operation + O_AFTER)
                else:
                    store_word(frame + F_LEFT, left)
                    store_word(frame + F_INDEX, index)
                    frame += FRAME
                    index = begin
                    operation += OPERATION
            elif code == TAGS:
                count, at = write_tag_count(columns, operation, frame, index, at, writing)
                if at < 0:
                    break
                if count == 0:
                    operation = load_word(operation + O_AFTER)
                else:
                    frame += FRAME
                    operation += OPERATION
            elif code == TAG:
                top = frame - FRAME
                number = written_known(columns, operation, load_word(top + F_KNOWN), index)
                known, known_tag = load_word(operation + O_KNOWNS) + KNOWN * number, NO_TAG
                if number < load_word(operation + O_KNOWN):
                    known_tag = load_word(known + T_TAG)
                tag = unknown_tag(operation, top, column)
                store_word(top + F_KNOWN, number)
                if tag < 0:
                    at = REFUSED
                    break
                if known_tag < tag:
                    store_word(top + F_KNOWN, number + 1)
                    store_word(top + F_BEGAN, at)
                    at += likely_header(load_word(operation + O_FORM))
                    operation = load_word(known + T_VALUE)
                elif tag < NO_TAG:
                    at = write_unknown(call, operation, top, column, tag, at, writing)
                    if at < 0:
                        break
                else:
                    at = write_tags_end(operation, at, writing)
                    frame = top
                    operation += OPERATION
            elif code == TAG_END:
                operation = load_word(operation + O_AFTER)
                at = write_tag_header(operation, frame - FRAME, at, writing)
                if at < 0:
                    break
            elif code == MARKER:
                null = is_null(column, index)
                if writing:
                    marker = 0 if load_word(operation + O_COMPACT) else 0xFF
                    store_int8(at, marker if null else 1)
                at += 1
                operation = load_word(operation + O_AFTER) if null else operation + OPERATION
            elif code == CHECK:
                defaults, count = load_word(operation + O_DEFAULTS), load_word(operation + O_COUNT)
                if not are_defaults(columns, defaults, count, index):
                    at = REFUSED
                    break
                operation += OPERATION
            else:
                at = at if code == END else REFUSED
                break
        if at != FULL:
            if at == REFUSED:
                at = written
                store_int8(load_word(call + C_REFUSED) + row, 1)
            ends, number = load_word(call + C_ENDS), row - first
            if writing:
                store_int32_native(ends + 4 * number + 4, at - out)
            else:
                store_word(ends + 8 * number, at - written)
            written = at
            row += 1
    store_word(call + C_ROW, row)
    store_word(call + C_WRITTEN, written - out)
    return GROW_DATA if at == FULL else DONE


@kernel
def encode(call: int, _structure: int, _value: int) -> int:
    """Write rows; stops where the output must grow to C_NEED, and goes on when called again."""
    return run(call, True)


@kernel
def measure(call: int, _structure: int, _value: int) -> int:
    """Add up what rows would take, and write none of them."""
    return run(call, False)
