"""Writes the tagged fields of structures, known and unknown, in ascending order."""

from __future__ import annotations

from flexwire.kernels.columns.comparing import are_defaults, extent, is_null
from flexwire.kernels.columns.layout import (
    C_LIMIT,
    COLUMN,
    F_BEGAN,
    F_KNOWN,
    F_LAST,
    F_UNKNOWN,
    K_CAPACITY,
    K_DATA,
    KNOWN,
    O_COLUMN,
    O_FORM,
    O_KNOWN,
    O_KNOWNS,
    O_REFUSED,
    O_REFUSEDS,
    REFUSED,
    T_COUNT,
    T_DEFAULTS,
    T_TAG,
)
from flexwire.kernels.columns.output import grow_output
from flexwire.kernels.machine import copy_memory, load_word, part, store_int8, store_word
from flexwire.kernels.memory import copy_bytes, inlined
from flexwire.kernels.wire.operations import BUFFER
from flexwire.kernels.wire.tags import header_size, is_among, likely_header, write_header
from flexwire.kernels.wire.varint import varint_size, write_varint
from flexwire.wire.limits import HIGHEST_TAG, HIGHEST_TAG_IN_BUFFER

# Above all tags.
NO_TAG = 2**40


@part
def written_known(columns: int, operation: int, number: int, index: int) -> int:
    """Give the first known tagged field from ``number`` on that does not have its default."""
    count = load_word(operation + O_KNOWN)
    known = load_word(operation + O_KNOWNS) + KNOWN * number
    while number < count:
        defaults, rows = load_word(known + T_DEFAULTS), load_word(known + T_COUNT)
        if not are_defaults(columns, defaults, rows, index):
            break
        number += 1
        known += KNOWN
    return number


@part
def count_tags(columns: int, operation: int, index: int) -> int:
    """Give how many known tagged fields do not have their defaults."""
    count = 0
    number = written_known(columns, operation, 0, index)
    while number < load_word(operation + O_KNOWN):
        count += 1
        number = written_known(columns, operation, number + 1, index)
    return count


@part
def is_unknown(operation: int, tag: int) -> bool:
    """Whether a tag can be unknown: neither known here, nor of another version's field."""
    if tag < 0 or tag > HIGHEST_TAG:
        return False
    if load_word(operation + O_FORM) == BUFFER and tag > HIGHEST_TAG_IN_BUFFER:
        return False
    known = load_word(operation + O_KNOWNS)
    for number in range(load_word(operation + O_KNOWN)):
        if load_word(known + KNOWN * number + T_TAG) == tag:
            return False
    return not is_among(tag, load_word(operation + O_REFUSEDS), load_word(operation + O_REFUSED))


@part
def unknown_tag(operation: int, top: int, column: int) -> int:
    """Give the next unknown tag, NO_TAG if there are no more, -1 for what cannot be written."""
    item, last = load_word(top + F_UNKNOWN), load_word(top + F_LAST)
    if item >= last:
        return NO_TAG
    tags, data = column + 2 * COLUMN, column + 3 * COLUMN
    place = load_word(tags + K_DATA) + 8 * item
    tag = load_word(place)
    if is_null(column + COLUMN, item) or is_null(tags, item) or is_null(data, item):
        return -1
    # The reference executor sorts them.
    if not is_unknown(operation, tag) or (item + 1 < last and load_word(place + 8) <= tag):
        return -1
    return tag


@part
def put_count(at: int, count: int, writing: bool) -> int:
    """Write how many tagged fields there are; gives the position after it."""
    return write_varint(at, count) if writing else at + varint_size(count)


@inlined
def write_tag_count(
    columns: int, operation: int, frame: int, index: int, at: int, writing: bool
) -> tuple[int, int]:
    """Write how many tagged fields there are, and put them on the stack; gives how many."""
    column = columns + load_word(operation + O_COLUMN)
    begin, count = 0, 0
    # Mostly the whole column has no unknown tagged field.
    if load_word(column + K_CAPACITY) > 0 and not is_null(column, index):
        begin, count = extent(column, index)
        if count < 0:
            return 0, REFUSED
    store_word(frame + F_UNKNOWN, begin)
    store_word(frame + F_KNOWN, 0)
    store_word(frame + F_LAST, begin + count)
    if load_word(operation + O_KNOWN):
        count += count_tags(columns, operation, index)
    if load_word(operation + O_FORM) != BUFFER or count == 0:
        # An empty buffer is a 0 as well.
        at = put_count(at, count, writing)
    return count, at


@inlined
def write_tags_end(operation: int, at: int, writing: bool) -> int:
    """Write what ends the tagged fields of a structure."""
    if load_word(operation + O_FORM) != BUFFER:
        return at
    if writing:
        store_int8(at, 0)
    return at + 1


@part
def write_unknown(  # noqa: PLR0917 - a kernel has no keyword arguments
    call: int, operation: int, top: int, column: int, tag: int, at: int, writing: bool
) -> int:
    """Write an unknown tagged field."""
    item, data = load_word(top + F_UNKNOWN), column + 3 * COLUMN
    begin, length = extent(data, item)
    form = load_word(operation + O_FORM)
    if length < 0 or (form == BUFFER and length == 0):
        return REFUSED
    if not writing:
        at += header_size(form, tag, length)
    else:
        at = write_header(at, form, tag, length)
        if length > load_word(call + C_LIMIT) - at:
            return grow_output(call, at, length)
        copy_bytes(at, load_word(data + K_DATA) + begin, length)
    store_word(top + F_UNKNOWN, item + 1)
    return at + length


@inlined
def write_tag_header(operation: int, top: int, at: int, writing: bool) -> int:
    """Write the header of the known tagged field whose value ends here, and make room for it."""
    form, began = load_word(operation + O_FORM), load_word(top + F_BEGAN)
    number = load_word(top + F_KNOWN) - 1
    tag = load_word(load_word(operation + O_KNOWNS) + KNOWN * number + T_TAG)
    reserved = likely_header(form)
    size = at - began - reserved
    if form == BUFFER and (size == 0 or tag > HIGHEST_TAG_IN_BUFFER):
        return REFUSED
    header = header_size(form, tag, size)
    if writing:
        if header != reserved:
            copy_memory(began + header, began + reserved, size)
        write_header(began, form, tag, size)
    return at + header - reserved
