"""Says of record batches what their records come to, without making columns of them.

Of each batch: how many bytes its keys and values have, how many are null, its oldest and newest
record. Of all together: how many records have which size, and of each record with a key a hash of
it, by which records of one key find each other. A batch is digested as a whole or not at all.
"""

from __future__ import annotations

from flexwire.kernels.columns.hashing import last_word, mix, take
from flexwire.kernels.columns.hashing_layout import FIRST_MIX, MIX_SHIFT, SECOND_MIX, TAKE
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
from flexwire.kernels.records.digesting_layout import (
    D_CAPACITY,
    D_DIGESTS,
    D_KEYS,
    D_SEED,
    D_SIZES,
    D_USED,
    DIGEST,
    EXACT,
    G_HEADERS,
    G_KEY_BYTES,
    G_NEWEST,
    G_NULL_KEYS,
    G_OLDEST,
    G_RECORDS,
    G_TOMBSTONES,
    G_VALUE_BYTES,
    HALF,
    K_HASH,
    K_OFFSET,
    K_OTHER_HASH,
    K_SIZE,
    KEY,
)
from flexwire.kernels.records.summing import add, size_of
from flexwire.kernels.records.walking import (
    is_common,
    is_intact,
    is_wanted,
    read_record,
    wants_all,
)
from flexwire.wire.batch_layout import (
    CONTROL_MASK,
    LEAST_RECORD,
    NO_VALUE,
    TIMESTAMP_TYPE_MASK,
)
from flexwire.wire.limits import INT64_MAX, INT64_MIN

# A shift of a signed word brings its sign along.
_SHIFTED = (1 << (64 - MIX_SHIFT)) - 1


@inlined
def class_of(size: int) -> int:
    """Give the class of a record size."""
    halvings = 0
    while size >= EXACT:
        size >>= 1
        halvings += 1
    return HALF * halvings + size


@inlined
def take_otherwise(code: int, word: int) -> int:
    """Take a word in as `take` does, by other numbers, for the second half of a hash."""
    code = (code ^ word) * FIRST_MIX
    return code ^ (code >> MIX_SHIFT & _SHIFTED)


@part
def put_key(call: int, key: int, size: int, offset: int, record_size: int) -> None:
    """Put the key of a record among the keys, for which there is room."""
    position, end, seed = key, key + size, load_word(call + D_SEED)
    one, other = seed ^ (size * TAKE), seed * SECOND_MIX + size
    while end - position >= 8:
        word = load_word(position)
        one, other = take(one, word), take_otherwise(other, word)
        position += 8
    if position < end:
        word = last_word(position, end - position, size)
        one, other = take(one, word), take_otherwise(other, word)
    used = load_word(call + D_USED)
    found = load_word(call + D_KEYS) + KEY * used
    store_word(found + K_HASH, mix(one))
    store_word(found + K_OTHER_HASH, mix(other))
    store_word(found + K_OFFSET, offset)
    store_word(found + K_SIZE, record_size)
    store_word(call + D_USED, used + 1)


@inlined
def put_time(digest: int, timestamp: int) -> None:
    """Have a digest know of a record's timestamp."""
    if timestamp != NO_VALUE:
        store_word(digest + G_OLDEST, min(load_word(digest + G_OLDEST), timestamp))
        store_word(digest + G_NEWEST, max(load_word(digest + G_NEWEST), timestamp))


@part
def clear(digest: int) -> None:
    """Begin a digest."""
    for at in range(0, DIGEST, 8):
        store_word(digest + at, 0)
    store_word(digest + G_OLDEST, INT64_MAX)
    store_word(digest + G_NEWEST, INT64_MIN)


@part
def walk_batch(call: int, batch: int, digest: int, most: int, sign: int) -> int:
    """Digest the first ``most`` records of a batch; gives how many there were before one refused.

    With a ``sign`` of -1 their sizes are taken back, and the rest is not looked at.
    """
    position, end = load_word(batch + B_START), load_word(batch + B_END)
    base_offset = load_word(batch + B_BASE_OFFSET)
    base_timestamp = load_word(batch + B_BASE_TIMESTAMP)
    attributes = load_word(batch + B_ATTRIBUTES)
    is_append_time, is_control = attributes & TIMESTAMP_TYPE_MASK != 0, attributes & CONTROL_MASK
    wants, sizes = wants_all(call), load_word(call + D_SIZES)
    budget = load_word(batch + B_BUDGET) - load_word(batch + B_COUNT)
    for number in range(most):
        start = position
        delta, offset_delta, key, key_size, _, value_size, headers, position = read_record(
            call, position, end, budget
        )
        if position < 0:
            return number
        budget -= headers
        timestamp = base_timestamp + delta
        if is_append_time:
            timestamp = load_word(batch + B_MAX_TIMESTAMP)
        if not wants and not is_wanted(call, base_offset + offset_delta, timestamp):
            continue
        if is_control == 0:
            add(sizes + 8 * class_of(position - start), sign)
        if sign < 0:
            continue
        add(digest + G_RECORDS, 1)
        add(digest + G_KEY_BYTES, size_of(key_size))
        add(digest + G_VALUE_BYTES, size_of(value_size))
        add(digest + G_HEADERS, headers)
        put_time(digest, timestamp)
        if key_size & 1:
            add(digest + G_NULL_KEYS, 1)
        elif is_control == 0:
            add(digest + G_TOMBSTONES, value_size & 1)
            put_key(call, key, key_size >> 1, base_offset + offset_delta, position - start)
    return most if position == end else -1


@part
def digest_batch(call: int, batch: int, digest: int) -> int:
    """Digest one batch; DONE, or REFUSED or GROW, and then nothing of it is."""
    count, size = load_word(batch + B_COUNT), load_word(batch + B_END) - load_word(batch + B_START)
    if count < 0 or count > size // LEAST_RECORD or count > load_word(batch + B_BUDGET):
        return REFUSED
    base_offset, base_timestamp = batch + B_BASE_OFFSET, batch + B_BASE_TIMESTAMP
    if not (is_common(load_word(base_offset)) and is_common(load_word(base_timestamp))):
        return REFUSED
    used = load_word(call + D_USED)
    if count > load_word(call + D_CAPACITY) - used:
        return GROW
    clear(digest)
    done = walk_batch(call, batch, digest, count, 1)
    if done == count:
        return DONE
    walk_batch(call, batch, digest, count if done < 0 else done, -1)
    store_word(call + D_USED, used)
    return REFUSED


@kernel
def digest_records(call: int, _unused: int, _also_unused: int) -> int:
    """Digest the batches from R_FIRST to R_BATCHES; R_FIRST is then the first that is not.

    DONE, or GROW where the keys have no room for that batch, or REFUSED where it is refused.
    """
    table, digests = load_word(call + R_TABLE), load_word(call + D_DIGESTS)
    while load_word(call + R_FIRST) < load_word(call + R_BATCHES):
        row = load_word(call + R_FIRST)
        batch = table + BATCH * row
        if load_word(batch + B_SKIP) == 0:
            if not is_intact(call, batch):
                return REFUSED
            status = digest_batch(call, batch, digests + DIGEST * row)
            if status != DONE:
                return status
        store_word(call + R_FIRST, row + 1)
    return DONE
