"""What waits for its counterpart, by connection and correlation id: requests, and early responses.

Entries stand in a pool. Those of one bucket are a chain in the order in which they came, so the
first with a key is the oldest; those of one connection and kind are a list, whose first gives up
when there are too many.
"""

from __future__ import annotations

from flexwire.kernels.capture.turns_layout import (
    ALL,
    ASKED,
    CONNECTION_SHIFT,
    CORRELATION_MASK,
    E_AFTER,
    E_BEFORE,
    E_INDEX,
    E_KEY,
    E_NEXT,
    ENTRY,
    F_CONNECTION,
    F_INDEX,
    FORGOT,
    NOWHERE,
    POOLED,
    S_FIRST,
    S_LAST,
    S_WAITING,
    SIDE,
    SIDE_SHIFT,
    STATE,
    T_CAPACITY,
    T_COUNT,
    T_ENTRIES,
    T_FORGOTTEN,
    T_FORGOTTEN_COUNT,
    T_FREE,
    T_HEADS,
    T_MASK,
    T_MOST,
    T_POOL,
    T_STATES,
    T_TAILS,
    T_USED,
    T_WHOSE,
)
from flexwire.kernels.machine import copy_memory, kernel, load_word, part, store_word

# Spreads keys that differ in a few bits.
_SPREAD, _SPREAD_SHIFT = 0x1E3779B97F4A7C15, 24


@part
def key_of(connection: int, side: int, correlation_id: int) -> int:
    """Give the key under which entries of a kind wait for a correlation id."""
    numbered = connection << CONNECTION_SHIFT | side << SIDE_SHIFT
    return numbered | correlation_id & CORRELATION_MASK


@part
def _bucket(call: int, key: int) -> int:
    return ((key * _SPREAD) >> _SPREAD_SHIFT & load_word(call + T_MASK)) * 8


@part
def is_full(call: int) -> bool:
    """Whether the pool has no room for one more."""
    used, capacity = load_word(call + T_USED), load_word(call + T_CAPACITY)
    return load_word(call + T_FREE) == NOWHERE and used == capacity


@part
def take(call: int, key: int) -> int:
    """Take out the oldest entry of a key; give its address, 0 for none.

    The entry stays as it is until the next one is added.
    """
    bucket = _bucket(call, key)
    pool = load_word(call + T_POOL)
    heads, tails = load_word(call + T_HEADS) + bucket, load_word(call + T_TAILS) + bucket
    previous, place = NOWHERE, load_word(heads)
    while place != NOWHERE and load_word(pool + place * POOLED + E_KEY) != key:
        previous, place = place, load_word(pool + place * POOLED + E_NEXT)
    if place == NOWHERE:
        return 0
    entry = pool + place * POOLED
    following = load_word(entry + E_NEXT)
    if previous == NOWHERE:
        store_word(heads, following)
    else:
        store_word(pool + previous * POOLED + E_NEXT, following)
    if following == NOWHERE:
        store_word(tails, previous)
    state = load_word(call + T_STATES) + (key >> CONNECTION_SHIFT) * STATE
    state += (key >> SIDE_SHIFT & 1) * SIDE
    before, after = load_word(entry + E_BEFORE), load_word(entry + E_AFTER)
    if before == NOWHERE:
        store_word(state + S_FIRST, after)
    else:
        store_word(pool + before * POOLED + E_AFTER, after)
    if after == NOWHERE:
        store_word(state + S_LAST, before)
    else:
        store_word(pool + after * POOLED + E_BEFORE, before)
    store_word(state + S_WAITING, load_word(state + S_WAITING) - 1)
    # What is free is a list by the same link, which nobody reads of a taken entry.
    store_word(entry + E_NEXT, load_word(call + T_FREE))
    store_word(call + T_FREE, place)
    return entry


@part
def add(call: int, key: int) -> int:
    """Make room for an entry, the last of its key, connection and kind; give its address.

    Where too many wait, the oldest gives up. There must be room in the pool.
    """
    pool = load_word(call + T_POOL)
    side = key >> SIDE_SHIFT & 1
    connection = key >> CONNECTION_SHIFT
    state = load_word(call + T_STATES) + connection * STATE + side * SIDE
    if load_word(state + S_WAITING) >= load_word(call + T_MOST):
        oldest = take(call, load_word(pool + load_word(state + S_FIRST) * POOLED + E_KEY))
        if side == ASKED:
            count = load_word(call + T_FORGOTTEN_COUNT)
            row = load_word(call + T_FORGOTTEN) + count * FORGOT
            store_word(row + F_CONNECTION, connection)
            store_word(row + F_INDEX, load_word(oldest + E_INDEX))
            store_word(call + T_FORGOTTEN_COUNT, count + 1)
    place = load_word(call + T_FREE)
    if place == NOWHERE:
        place = load_word(call + T_USED)
        store_word(call + T_USED, place + 1)
    else:
        store_word(call + T_FREE, load_word(pool + place * POOLED + E_NEXT))
    entry = pool + place * POOLED
    bucket = _bucket(call, key)
    tails = load_word(call + T_TAILS) + bucket
    last = load_word(tails)
    if last == NOWHERE:
        store_word(load_word(call + T_HEADS) + bucket, place)
    else:
        store_word(pool + last * POOLED + E_NEXT, place)
    store_word(tails, place)
    before = load_word(state + S_LAST)
    if before == NOWHERE:
        store_word(state + S_FIRST, place)
    else:
        store_word(pool + before * POOLED + E_AFTER, place)
    store_word(state + S_LAST, place)
    store_word(entry + E_KEY, key)
    store_word(entry + E_NEXT, NOWHERE)
    store_word(entry + E_BEFORE, before)
    store_word(entry + E_AFTER, NOWHERE)
    store_word(state + S_WAITING, load_word(state + S_WAITING) + 1)
    return entry


@kernel
def drain(call: int, _unused: int, _also_unused: int) -> int:
    """Take out all entries of the connection T_WHOSE, or of the first T_COUNT ones if `ALL`.

    They go to T_ENTRIES, requests before responses, the oldest first; gives how many there are.
    """
    whose, target = load_word(call + T_WHOSE), load_word(call + T_ENTRIES)
    first, last = (0, load_word(call + T_COUNT)) if whose == ALL else (whose, whose + 1)
    pool, taken = load_word(call + T_POOL), 0
    for connection in range(first, last):
        for side in range(2):
            state = load_word(call + T_STATES) + connection * STATE + side * SIDE
            while load_word(state + S_WAITING) > 0:
                place = load_word(state + S_FIRST)
                entry = take(call, load_word(pool + place * POOLED + E_KEY))
                copy_memory(target + taken * ENTRY, entry, ENTRY)
                taken += 1
    return taken


@kernel
def restore(call: int, _unused: int, _also_unused: int) -> int:
    """Add the T_COUNT entries of T_ENTRIES, for which there must be room; gives how many."""
    source, count = load_word(call + T_ENTRIES), load_word(call + T_COUNT)
    for one in range(count):
        kept = source + one * ENTRY
        copy_memory(add(call, load_word(kept + E_KEY)), kept, ENTRY)
    return count
