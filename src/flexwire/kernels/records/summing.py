"""Counts the records of record batches and adds their sizes, without making columns of them.

A batch counts as a whole or not at all: where one of its records is refused, or has no room among
the sums, those before it are taken back by walking them once more.
"""

from __future__ import annotations

from flexwire.kernels.columns.hashing_layout import FIRST_MIX, SECOND_MIX
from flexwire.kernels.machine import kernel, load_word, part, store_word
from flexwire.kernels.memory import inlined
from flexwire.kernels.records.columns_layout import (
    B_ATTRIBUTES,
    B_BASE_OFFSET,
    B_BASE_TIMESTAMP,
    B_BUDGET,
    B_COUNT,
    B_END,
    B_MAX_TIMESTAMP,
    B_PIECE,
    B_SKIP,
    B_START,
    BATCH,
    DONE,
    GROW,
    R_BATCHES,
    R_FIRST,
    R_TABLE,
    REFUSED,
)
from flexwire.kernels.records.summing_layout import (
    MOST_PLACES,
    SUM,
    T_BY_KEY,
    T_BY_VALUE,
    T_CAPACITY,
    T_INDEX,
    T_MASK,
    T_SUMS,
    T_USED,
    U_FACT,
    U_KEY,
    U_KEY_BYTES,
    U_RECORDS,
    U_VALUE,
    U_VALUE_BYTES,
)
from flexwire.kernels.records.walking import (
    is_common,
    is_intact,
    is_wanted,
    read_record,
    wants_all,
)
from flexwire.wire.batch_layout import LEAST_RECORD, TIMESTAMP_TYPE_MASK

_HIGH = 32


@part
def find_sum(call: int, fact: int, key: int, value: int) -> int:
    """Give the address of a sum, which may be new; 0 where there is no room for it."""
    code = (key * FIRST_MIX ^ value) * SECOND_MIX ^ fact * FIRST_MIX
    place, mask = code >> _HIGH ^ code, load_word(call + T_MASK)
    index, sums = load_word(call + T_INDEX), load_word(call + T_SUMS)
    for _ in range(MOST_PLACES):
        at = index + 8 * (place & mask)
        number = load_word(at)
        if number == 0:
            used = load_word(call + T_USED)
            if used == load_word(call + T_CAPACITY):
                return 0
            store_word(at, used + 1)
            store_word(call + T_USED, used + 1)
            found = sums + SUM * used
            store_word(found + U_FACT, fact)
            store_word(found + U_KEY, key)
            store_word(found + U_VALUE, value)
            store_word(found + U_RECORDS, 0)
            store_word(found + U_KEY_BYTES, 0)
            store_word(found + U_VALUE_BYTES, 0)
            return found
        found = sums + SUM * (number - 1)
        if (
            load_word(found + U_KEY) == key
            and load_word(found + U_VALUE) == value
            and load_word(found + U_FACT) == fact
        ):
            return found
        place += 1
    return 0


@inlined
def add(at: int, number: int) -> None:
    """Add to a word."""
    store_word(at, load_word(at) + number)


@inlined
def size_of(raw: int) -> int:
    """Give the size of a key or value from what `read_extent` gives for it: none of null."""
    return 0 if raw & 1 else raw >> 1


@part
def walk_batch(call: int, batch: int, most: int, sign: int) -> tuple[int, int]:
    """Add ``sign`` times the first ``most`` records of a batch to their sums.

    Gives how many were added, and how it ended: DONE, or before one that is REFUSED, or for which
    there is no room, GROW.
    """
    position, end = load_word(batch + B_START), load_word(batch + B_END)
    base_offset = load_word(batch + B_BASE_OFFSET)
    base_timestamp = load_word(batch + B_BASE_TIMESTAMP)
    is_append_time = load_word(batch + B_ATTRIBUTES) & TIMESTAMP_TYPE_MASK != 0
    fact, wants = load_word(batch + B_PIECE), wants_all(call)
    by_key, by_value = load_word(call + T_BY_KEY), load_word(call + T_BY_VALUE)
    budget = load_word(batch + B_BUDGET) - load_word(batch + B_COUNT)
    found, last_key, last_value = 0, -1, -1
    for number in range(most):
        delta, offset_delta, _, key_size, _, value_size, headers, position = read_record(
            call, position, end, budget
        )
        if position < 0:
            return number, REFUSED
        budget -= headers
        timestamp = base_timestamp + delta
        if is_append_time:
            timestamp = load_word(batch + B_MAX_TIMESTAMP)
        if not wants and not is_wanted(call, base_offset + offset_delta, timestamp):
            continue
        key, value = key_size & by_key, value_size & by_value
        # Most records are like the one before.
        if found == 0 or key != last_key or value != last_value:
            found = find_sum(call, fact, key, value)
            if found == 0:
                return number, GROW
            last_key, last_value = key, value
        add(found + U_RECORDS, sign)
        add(found + U_KEY_BYTES, sign * size_of(key_size))
        add(found + U_VALUE_BYTES, sign * size_of(value_size))
    return most, DONE if position == end else REFUSED


@part
def sum_batch(call: int, batch: int) -> int:
    """Count one batch; DONE, or REFUSED or GROW, and then nothing of it is counted."""
    count, size = load_word(batch + B_COUNT), load_word(batch + B_END) - load_word(batch + B_START)
    if count < 0 or count > size // LEAST_RECORD or count > load_word(batch + B_BUDGET):
        return REFUSED
    base_offset, base_timestamp = batch + B_BASE_OFFSET, batch + B_BASE_TIMESTAMP
    if not (is_common(load_word(base_offset)) and is_common(load_word(base_timestamp))):
        return REFUSED
    used = load_word(call + T_USED)
    added, status = walk_batch(call, batch, count, 1)
    if status != DONE:
        walk_batch(call, batch, added, -1)
        # What has no room among no sums has none at all.
        if used == 0:
            return REFUSED
    return status


@kernel
def sum_records(call: int, _unused: int, _also_unused: int) -> int:
    """Count the batches from R_FIRST to R_BATCHES; R_FIRST is then the first that is not counted.

    DONE, or GROW where the sums have no room for that batch, or REFUSED where it is refused.
    """
    table = load_word(call + R_TABLE)
    while load_word(call + R_FIRST) < load_word(call + R_BATCHES):
        batch = table + BATCH * load_word(call + R_FIRST)
        if load_word(batch + B_SKIP) == 0:
            if not is_intact(call, batch):
                return REFUSED
            status = sum_batch(call, batch)
            if status != DONE:
                return status
        store_word(call + R_FIRST, load_word(call + R_FIRST) + 1)
    return DONE
