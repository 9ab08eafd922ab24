"""Reads the tagged fields of structures, known and unknown."""

from __future__ import annotations

from flexwire.kernels.columns.filling import grow_data, grow_level, set_used, used
from flexwire.kernels.columns.layout import (
    C_LEVELS,
    COLUMN,
    F_END,
    F_KNOWN,
    F_LEFT,
    F_TAG,
    K_CAPACITY,
    K_DATA,
    KNOWN,
    N_CAPACITY,
    N_COUNT,
    O_FORM,
    O_KNOWN,
    O_KNOWNS,
    O_LEVEL,
    O_REFUSED,
    O_REFUSEDS,
    REFUSED,
)
from flexwire.kernels.machine import load_word, part, store_word
from flexwire.kernels.memory import copy_bytes, inlined
from flexwire.kernels.wire.operations import BUFFER
from flexwire.kernels.wire.tags import is_among, read_header
from flexwire.kernels.wire.varint import read_varint
from flexwire.wire.limits import HIGHEST_TAG


@inlined
def end_tags(call: int, operation: int, column: int, index: int) -> None:
    """Say that a structure has no more unknown tagged fields than there are now."""
    level = load_word(call + C_LEVELS) + load_word(operation + O_LEVEL)
    set_used(column, index, load_word(level + N_COUNT))


@inlined
def open_tags(operation: int, frame: int, position: int, end: int) -> int:
    """Read how many tagged fields there are, and put that on the stack."""
    count, at = 0, position
    if load_word(operation + O_FORM) != BUFFER:
        count, at = read_varint(position, end)
        if at < 0 or count > end - at:
            return REFUSED
    store_word(frame + F_LEFT, count)
    store_word(frame + F_KNOWN, 0)
    store_word(frame + F_END, end)
    store_word(frame + F_TAG, -1)
    return at


@inlined
def next_tag(operation: int, top: int, position: int, end: int) -> tuple[int, int, int]:
    """Read the header of the next tagged field; the tag is -1 if none follows."""
    form = load_word(operation + O_FORM)
    if form != BUFFER and load_word(top + F_LEFT) <= 0:
        return -1, 0, position
    tag, size, at = read_header(form, position, end)
    if at < 0 or tag > HIGHEST_TAG or size > end - at or (0 <= tag <= load_word(top + F_TAG)):
        return 0, 0, REFUSED
    return tag, size, at


@inlined
def next_known(operation: int, top: int) -> int:
    """Give the row of the next known tagged field, or 0 if there are no more."""
    number = load_word(top + F_KNOWN)
    if number >= load_word(operation + O_KNOWN):
        return 0
    return load_word(operation + O_KNOWNS) + KNOWN * number


@inlined
def took_tag(top: int, tag: int) -> None:
    """Say that a tagged field was there."""
    store_word(top + F_LEFT, load_word(top + F_LEFT) - 1)
    store_word(top + F_TAG, tag)


@part
def keep_unknown(call: int, operation: int, column: int, tag: int, size: int, at: int) -> int:
    """Keep an unknown tagged field: the tag two columns from here, the bytes in the next."""
    if is_among(tag, load_word(operation + O_REFUSEDS), load_word(operation + O_REFUSED)):
        return REFUSED
    level = load_word(call + C_LEVELS) + load_word(operation + O_LEVEL)
    item = load_word(level + N_COUNT)
    if item >= load_word(level + N_CAPACITY):
        return grow_level(call, level, item + 1)
    text = column + 3 * COLUMN
    before = used(text, item)
    if size > load_word(text + K_CAPACITY) - before:
        return grow_data(call, text, before + size)
    store_word(load_word(column + 2 * COLUMN + K_DATA) + 8 * item, tag)
    copy_bytes(load_word(text + K_DATA) + before, at, size)
    set_used(text, item, before + size)
    store_word(level + N_COUNT, item + 1)
    return at + size
