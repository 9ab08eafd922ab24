"""Reads the headers of frames, and finds for each response its request.

Rows are taken in order. Before one that is not plain the kernel stops, and has done nothing of it.
"""

from __future__ import annotations

from flexwire.kernels.capture.turns_layout import (
    ACKS_AFTER_COMPACT_TEXT,
    ACKS_AFTER_TEXT,
    ACKS_FIRST,
    ACKS_SHIFT,
    ALWAYS,
    ANSWER,
    API_KEY_AT,
    API_KEY_SHIFT,
    API_VERSION_AT,
    ASKED,
    ASKS,
    AT_END,
    BY_OBJECTS,
    CLASS_SHIFT,
    CLIENT_SHIFT,
    COMPACT_TEXT,
    E_CLIENT,
    E_INDEX,
    E_TIME,
    E_WHAT,
    EARLY,
    EXTENT,
    FULL,
    G_COUNT,
    G_DATA,
    G_OFFSETS,
    G_OUT,
    G_START,
    GUARDED,
    GUARDS,
    HANDSHAKE,
    IS_PLAIN,
    L_CLIENT,
    L_CONNECTION,
    L_INDEX,
    L_TIME,
    L_WHAT,
    LATER,
    NEUTRAL,
    NEW_CLIENT,
    NO_CLIENT,
    NO_TEXT,
    ODD,
    OPEN,
    OPENS,
    REQUEST,
    REQUEST_HEAD,
    RESPONSE_HEAD,
    S_CLIENT,
    S_FLAGS,
    S_WAITING,
    SEARCHED,
    SIDE,
    STATE,
    T_API_KEY,
    T_API_VERSION,
    T_AT,
    T_BODY_OFFSET,
    T_CLIENT,
    T_CLIENT_EXTENTS,
    T_CLIENT_MASK,
    T_CLIENTS,
    T_CONNECTION,
    T_CORRELATION_ID,
    T_DATA,
    T_EARLY,
    T_EARLY_COUNT,
    T_END,
    T_ERRORS,
    T_EXPECTS,
    T_FLAGS,
    T_GIVEN,
    T_GUARDED,
    T_HEADER_VERSION,
    T_INDEX,
    T_IS_EXPECTED,
    T_IS_RESPONSE,
    T_KEYS,
    T_KIND,
    T_NUMBERS,
    T_PREPARED,
    T_REQUEST_TIME,
    T_SECRETS,
    T_START,
    T_STATES,
    T_STOP,
    T_TABLE,
    T_TIME,
    T_TRIED,
    T_VERSIONS,
    TAGS_SHIFT,
    THREE_BITS,
    TOKENS,
    TWO_BITS,
    UNPAIRED,
    VERSION_MASK,
    VERSION_SHIFT,
)
from flexwire.kernels.capture.turns_waiting import add, is_full, key_of, take
from flexwire.kernels.machine import (
    compare_memory,
    copy_memory,
    kernel,
    load_int16,
    load_int32,
    load_int32_native,
    load_uint8,
    load_word,
    part,
    store_int8,
    store_word,
)
from flexwire.kernels.memory import store_int32_native
from flexwire.kernels.wire.lengths import NULL, STRING_WIDTH, read_length
from flexwire.wire.segment_layout import CORRELATION_ID_IN_REQUEST

# FNV-1a, cut to what a word holds.
_HASH, _HASH_PRIME, _HASH_MASK = 0x4BF29CE484222325, 0x100000001B3, (1 << 62) - 1
_REFUSED, _ZERO = -2, 0


@part
def _word(call: int, column: int, row: int) -> int:
    return load_word(load_word(call + column) + 8 * row)


@part
def _put(call: int, column: int, row: int, value: int) -> None:
    store_int32_native(load_word(call + column) + 4 * row, value)


@part
def _get(call: int, column: int, row: int) -> int:
    return load_int32_native(load_word(call + column) + 4 * row)


@part
def _mark(call: int, column: int, row: int, value: int) -> None:
    store_int8(load_word(call + column) + row, value)


@part
def _client(call: int, start: int, size: int) -> int:
    """Give the number of a client id, `_REFUSED` for a new one."""
    code = _HASH
    for place in range(start, start + size):
        code = ((code ^ load_uint8(place)) * _HASH_PRIME) & _HASH_MASK
    code ^= code >> 29
    mask = load_word(call + T_CLIENT_MASK)
    while True:
        found = load_word(load_word(call + T_CLIENTS) + 8 * (code & mask)) - 1
        if found < 0:
            return _REFUSED
        extent = load_word(call + T_CLIENT_EXTENTS) + EXTENT * found
        if load_word(extent + 8) == size and compare_memory(load_word(extent), start, size) == 0:
            return found
        code += 1


@part
def _is_held(call: int, start: int, stop: int) -> bool:
    """Whether bytes hold one of T_SECRETS."""
    for secret in range(2):
        extent = load_word(call + T_SECRETS) + EXTENT * secret
        sought, size = load_word(extent), load_word(extent + 8)
        # The last byte is the one that is seldom there.
        last = load_uint8(sought + size - 1)
        for place in range(start, stop - size + 1):
            if load_uint8(place + size - 1) == last and compare_memory(place, sought, size) == 0:
                return True
    return False


@part
def _expects(code: int, body: int, stop: int) -> bool:
    """Whether it is sure that a response is expected."""
    how = code >> ACKS_SHIFT & THREE_BITS
    if how == ALWAYS:
        return True
    if how in (ACKS_AFTER_TEXT, ACKS_AFTER_COMPACT_TEXT):
        compact = 1 if how == ACKS_AFTER_COMPACT_TEXT else 0
        length, body = read_length(compact, 1, STRING_WIDTH, body, stop)
        if body < 0 or length > stop - body:
            return False
        body += max(length, 0)
    elif how != ACKS_FIRST:
        return False
    return stop - body >= 2 and load_int16(body) != 0


@part
def _describe(call: int, row: int, start: int, stop: int) -> int:
    """Read a request's header into the columns; gives its word of the table, or why not."""
    if stop - start < REQUEST_HEAD:
        return -ODD
    api_key, version = load_int16(start + API_KEY_AT), load_int16(start + API_VERSION_AT)
    versions = load_word(call + T_VERSIONS)
    if api_key < 0 or api_key >= load_word(call + T_KEYS) or version < 0 or version >= versions:
        return -ODD
    code = _word(call, T_TABLE, api_key * versions + version)
    if code & IS_PLAIN == 0:
        return -ODD
    body, client, written = start + REQUEST_HEAD, NO_CLIENT, code >> CLIENT_SHIFT & TWO_BITS
    if written != NO_TEXT:
        length, body = read_length(1 if written == COMPACT_TEXT else 0, 1, STRING_WIDTH, body, stop)
        if body < 0 or length > stop - body:
            return -ODD
        if length != NULL:
            client = _client(call, body, length)
            body += length
    if code >> TAGS_SHIFT & 1:
        if body >= stop or load_uint8(body) != 0:
            return -ODD
        body += 1
    _put(call, T_API_KEY, row, api_key)
    _put(call, T_API_VERSION, row, version)
    _put(call, T_CORRELATION_ID, row, load_int32(start + CORRELATION_ID_IN_REQUEST))
    _put(call, T_CLIENT, row, client)
    _put(call, T_HEADER_VERSION, row, code >> VERSION_SHIFT & TWO_BITS)
    _put(call, T_BODY_OFFSET, row, body - start)
    return -NEW_CLIENT if client == _REFUSED else code


@part
def _see(call: int, state: int, row: int, code: int, start: int, stop: int) -> int:
    """Take a request in for what it says of authentication; why reading has to stop, or `_ZERO`."""
    what, flags = code >> CLASS_SHIFT & THREE_BITS, load_word(state + S_FLAGS)
    if what == HANDSHAKE:
        return TOKENS
    if what == NEUTRAL or flags & GUARDED:
        return _ZERO
    if what == GUARDS or (what == SEARCHED and _is_held(call, start, stop)):
        store_word(state + S_FLAGS, flags | GUARDED)
    elif flags & OPEN == 0 and load_word(call + T_TRIED) != row:
        return OPENS
    return _ZERO


@part
def _ask(call: int, connection: int, state: int, row: int) -> None:
    """Let a request wait for its response, unless that was there before."""
    correlation_id, seen = _get(call, T_CORRELATION_ID, row), _word(call, T_TIME, row)
    what = _get(call, T_API_KEY, row) << API_KEY_SHIFT | _get(call, T_API_VERSION, row)
    while load_word(state + S_WAITING + EARLY * SIDE) > 0:
        early = take(call, key_of(connection, EARLY, correlation_id))
        if early == 0:
            break
        # Others answered requests from before the capture.
        if seen <= load_word(early + E_TIME):
            count = load_word(call + T_EARLY_COUNT)
            later = load_word(call + T_EARLY) + count * LATER
            store_word(later + L_CONNECTION, connection)
            store_word(later + L_INDEX, load_word(early + E_INDEX))
            store_word(later + L_WHAT, what)
            store_word(later + L_CLIENT, _get(call, T_CLIENT, row))
            store_word(later + L_TIME, seen)
            store_word(call + T_EARLY_COUNT, count + 1)
            return
    entry = add(call, key_of(connection, ASKED, correlation_id))
    store_word(entry + E_WHAT, what)
    store_word(entry + E_CLIENT, _get(call, T_CLIENT, row))
    store_word(entry + E_TIME, seen)
    store_word(entry + E_INDEX, _word(call, T_INDEX, row))


@part
def _request(call: int, connection: int, state: int, row: int) -> int:
    if row == load_word(call + T_PREPARED):
        expects = load_word(call + T_EXPECTS) != 0
    else:
        start = load_word(call + T_DATA) + _word(call, T_START, row)
        stop = load_word(call + T_DATA) + _word(call, T_STOP, row)
        code = _describe(call, row, start, stop)
        if code <= 0:
            return -code
        why = _see(call, state, row, code, start, stop)
        if why != _ZERO:
            return why
        store_word(state + S_CLIENT, _get(call, T_CLIENT, row))
        if not _expects(code, start + _get(call, T_BODY_OFFSET, row), stop):
            return ASKS
        expects = True
    if expects:
        _ask(call, connection, state, row)
    _mark(call, T_IS_EXPECTED, row, 1 if expects else 0)
    _mark(call, T_KIND, row, REQUEST)
    return _ZERO


@part
def _response(call: int, connection: int, row: int) -> int:
    start, stop = _word(call, T_START, row), _word(call, T_STOP, row)
    if stop - start < RESPONSE_HEAD:
        return ODD
    _put(call, T_CORRELATION_ID, row, load_int32(load_word(call + T_DATA) + start))
    return _answer(call, connection, row)


@part
def _answer(call: int, connection: int, row: int) -> int:
    """Find the request of a response whose correlation id stands in the columns."""
    correlation_id = _get(call, T_CORRELATION_ID, row)
    asked = take(call, key_of(connection, ASKED, correlation_id))
    if asked == 0:
        entry = add(call, key_of(connection, EARLY, correlation_id))
        store_word(entry + E_WHAT, _ZERO)
        store_word(entry + E_CLIENT, NO_CLIENT)
        store_word(entry + E_TIME, _word(call, T_TIME, row))
        store_word(entry + E_INDEX, _word(call, T_INDEX, row))
        _mark(call, T_KIND, row, UNPAIRED)
        return _ZERO
    what = load_word(asked + E_WHAT)
    _put(call, T_API_KEY, row, what >> API_KEY_SHIFT)
    _put(call, T_API_VERSION, row, what & VERSION_MASK)
    _put(call, T_CLIENT, row, load_word(asked + E_CLIENT))
    store_word(load_word(call + T_REQUEST_TIME) + 8 * row, load_word(asked + E_TIME))
    _mark(call, T_KIND, row, ANSWER)
    return _ZERO


@part
def _given(call: int, connection: int, state: int, row: int, is_response: int) -> int:
    """Take a row in that stands in the columns."""
    if is_response:
        return _answer(call, connection, row)
    flags = load_word(state + S_FLAGS)
    if flags & GUARDED == 0:
        given = load_uint8(load_word(call + T_FLAGS) + row)
        store_word(state + S_FLAGS, flags | given & (OPEN | GUARDED))
    store_word(state + S_CLIENT, _get(call, T_CLIENT, row))
    if load_uint8(load_word(call + T_IS_EXPECTED) + row):
        _ask(call, connection, state, row)
    return _ZERO


@kernel
def read(call: int, _unused: int, _also_unused: int) -> int:
    """Read rows from T_AT on, and say why reading stopped there. Rows `BY_OBJECTS` are left out."""
    row, end = load_word(call + T_AT), load_word(call + T_END)
    connections, numbers = load_word(call + T_CONNECTION), load_word(call + T_NUMBERS)
    responses, errors = load_word(call + T_IS_RESPONSE), load_word(call + T_ERRORS)
    states, given = load_word(call + T_STATES), load_word(call + T_GIVEN)
    why = _ZERO
    while row < end:
        connection = load_word(numbers + 8 * load_int32_native(connections + 4 * row))
        state = states + STATE * connection
        if load_word(state + S_FLAGS) & BY_OBJECTS == 0:
            if is_full(call):
                why = FULL
            elif load_uint8(given + row):
                why = _given(call, connection, state, row, load_uint8(responses + row))
            elif load_uint8(errors + row):
                why = ODD
            elif load_uint8(responses + row):
                why = _response(call, connection, row)
            else:
                why = _request(call, connection, state, row)
            if why != _ZERO:
                break
            flags = load_word(state + S_FLAGS)
            _mark(call, T_FLAGS, row, flags & (OPEN | GUARDED))
            _mark(call, T_GUARDED, row, 0 if flags & (OPEN | GUARDED) == OPEN else 1)
        row += 1
    store_word(call + T_AT, row)
    return why if row < end else AT_END


@kernel
def gather(call: int, _unused: int, _also_unused: int) -> int:
    """Copy the bytes of each row, as many as its offsets have, to where they begin; gives 0."""
    data, out = load_word(call + G_DATA), load_word(call + G_OUT)
    starts, offsets = load_word(call + G_START), load_word(call + G_OFFSETS)
    for row in range(load_word(call + G_COUNT)):
        at = load_int32_native(offsets + 4 * row)
        size = load_int32_native(offsets + 4 * row + 4) - at
        copy_memory(out + at, data + load_word(starts + 8 * row), size)
    return _ZERO
