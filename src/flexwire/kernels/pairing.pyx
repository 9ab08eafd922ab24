"""Reads the headers of frames, and finds the request that belongs to each response.

The input is the address of a `Run`: frames in the order of their bytes, the state of each
connection, and columns for the values in headers. The kernel stops before a row that is not plain,
and changes nothing for that row. A `Stop` says why. Python processes the row, and the kernel
continues.

Requests wait for their responses, and early responses wait for their requests, by connection and
correlation id. They are entries in a pool. The entries in a bucket form a chain in the order in
which they came, so the first entry with a key is the oldest. The entries of a connection and kind
form a list. If too many wait, the first entry is removed.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcmp

from flexwire.kernels.cursor cimport Cursor, left, load_int16, load_int32, read_length, take

cdef enum:
    API_VERSION_AT = 2     # the offset in a request, after the api key
    CORRELATION_ID_IN_REQUEST = 4
    REQUEST_START = 8      # the api key, the version and the correlation id
    RESPONSE_START = 4     # the correlation id
    STRING_WIDTH = 2

    # The parts of a word in the table of APIs: whether the request is plain, the header's version,
    # the format of the client id, whether tagged fields follow, the effect on authentication, the
    # place of acks, and the tag of the client instance id plus 1 if that is the only tagged field
    # that Kafka knows.
    IS_PLAIN = 1
    VERSION_SHIFT = 1
    CLIENT_SHIFT = 3
    TAGS_SHIFT = 5
    CLASS_SHIFT = 6
    ACKS_SHIFT = 9
    INSTANCE_SHIFT = 12
    TWO_BITS = 3
    THREE_BITS = 7
    SEVEN_BITS = 127

    # A section with one tagged field: the count, the tag, the size, and a uuid.
    UUID_SIZE = 16
    INSTANCE_HEAD = 3

    # The bits in the flags of a connection.
    OPEN = 1
    GUARDED = 2
    BY_OBJECTS = 4

    API_KEY_SHIFT = 16     # the api key is above the version
    VERSION_MASK = 0xFFFF
    # in a key, the connection is above the side, which is above the correlation id
    CONNECTION_SHIFT = 33
    SIDE_SHIFT = 32
    NOWHERE = -1
    NO_CLIENT = -1
    NEW_ID = -2            # a client id that has no number
    ALL = -1
    HASH_SHIFT = 29
    SPREAD_SHIFT = 24

cdef extern from *:
    """
    #define CORRELATION_MASK 0xFFFFFFFFLL
    /* FNV-1a, cut to what a word of Python's side holds; and what spreads keys of a few bits. */
    #define HASH 0x4BF29CE484222325ULL
    #define HASH_PRIME 0x100000001B3ULL
    #define HASH_MASK 0x3FFFFFFFFFFFFFFFULL
    #define SPREAD 0x1E3779B97F4A7C15ULL
    """
    const int64_t CORRELATION_MASK
    const uint64_t HASH, HASH_PRIME, HASH_MASK, SPREAD

# The reasons for stopping before row `at`: all rows are read; the row is not plain; its client id
# is new; Python must find out whether its body decodes, or whether it expects a response; raw
# tokens may follow it; the pool is full. GOES_ON is used only inside the kernel.
cdef enum Stop:
    AT_END, ODD, NEW_CLIENT, OPENS, ASKS, TOKENS, FULL, GOES_ON

# The kinds of rows: not read yet; a request; a response without its request; a response with its
# request.
cdef enum Kind:
    UNREAD, REQUEST, UNPAIRED, ANSWER

cdef enum Written:
    NO_TEXT, TEXT, COMPACT_TEXT

# The effects on authentication: it may continue; it begins; it is ruled out by a request that
# decodes; it is ruled out by a request that contains none of the secrets; raw tokens may follow
# this request.
cdef enum Meaning:
    NEUTRAL, GUARDS, RULES_OUT, SEARCHED, HANDSHAKE

# When a response is expected: always; unless the int16 at the body's start, or after its first
# string, is 0; or Python must decide.
cdef enum Acks:
    ALWAYS, ACKS_FIRST, ACKS_AFTER_TEXT, ACKS_AFTER_COMPACT_TEXT, ACKS_UNKNOWN

cdef enum Side:
    ASKED, EARLY

cdef struct Extent:
    const uint8_t *at
    int64_t size

# A connection, and for each side the number of waiting entries, the first and the last entry.
cdef struct State:
    int64_t flags
    int64_t client
    int64_t waiting[2]
    int64_t first[2]
    int64_t last[2]

cdef struct Entry:
    int64_t key
    int64_t what           # the api key and the version
    int64_t client
    int64_t time
    int64_t index

# An entry in the pool, with its places in the chain of its bucket and in the list of its
# connection.
cdef struct Pooled:
    Entry entry
    int64_t next
    int64_t before
    int64_t after

cdef struct Forgotten:
    int64_t connection
    int64_t index

# The facts of a request whose response was already returned.
cdef struct Later:
    int64_t connection
    int64_t index
    int64_t what
    int64_t client
    int64_t time

# A run over rows. In Python, `flexwire.capture.pairing.layout.PairingWords` describes each word.
cdef struct Run:
    const uint8_t *data
    int64_t at
    int64_t end
    const int32_t *connection
    const uint8_t *is_response
    const int64_t *index
    const int64_t *time
    const int64_t *start
    const int64_t *stop
    const uint8_t *errors
    const int64_t *numbers
    uint8_t *kind
    int32_t *api_key
    int32_t *api_version
    int32_t *correlation_id
    int32_t *client
    int32_t *header_version
    int32_t *body_offset
    int32_t *instance_at
    int64_t *request_time
    uint8_t *is_expected
    uint8_t *guarded
    uint8_t *flags
    const uint8_t *given
    int64_t prepared
    int64_t expects
    int64_t tried
    Forgotten *forgotten
    int64_t forgotten_count
    Later *early
    int64_t early_count
    const int64_t *table
    int64_t keys
    int64_t versions
    const int64_t *clients
    int64_t client_mask
    const Extent *client_extents
    const Extent *secrets
    State *states
    Pooled *pool
    int64_t capacity
    int64_t used
    int64_t free
    int64_t *heads
    int64_t *tails
    int64_t mask
    int64_t most
    Entry *entries
    int64_t count
    int64_t whose


# Functions for waiting entries.

cdef inline int64_t key_of(int64_t connection, Side side, int64_t correlation_id) noexcept nogil:
    """Return the key under which entries of a side wait for a correlation id."""
    return (
        connection << CONNECTION_SHIFT | <int64_t> side << SIDE_SHIFT
        | correlation_id & CORRELATION_MASK
    )


cdef inline int64_t bucket_of(const Run *run, int64_t key) noexcept nogil:
    return <int64_t> (<uint64_t> key * SPREAD >> SPREAD_SHIFT & <uint64_t> run.mask)


cdef inline bint is_full(const Run *run) noexcept nogil:
    """Return whether the pool has no room for another entry."""
    return run.free == NOWHERE and run.used == run.capacity


cdef Entry *take_out(Run *run, int64_t key) noexcept nogil:
    """Remove and return the oldest entry with a key, or NULL if there is none.

    The entry does not change until the next one is added.
    """
    cdef Pooled *pool = run.pool
    cdef Pooled *pooled
    cdef State *state = &run.states[key >> CONNECTION_SHIFT]
    cdef int side = key >> SIDE_SHIFT & 1
    cdef int64_t bucket = bucket_of(run, key)
    cdef int64_t previous = NOWHERE
    cdef int64_t place = run.heads[bucket]
    while place != NOWHERE and pool[place].entry.key != key:
        previous, place = place, pool[place].next
    if place == NOWHERE:
        return NULL
    pooled = &pool[place]
    if previous == NOWHERE:
        run.heads[bucket] = pooled.next
    else:
        pool[previous].next = pooled.next
    if pooled.next == NOWHERE:
        run.tails[bucket] = previous
    if pooled.before == NOWHERE:
        state.first[side] = pooled.after
    else:
        pool[pooled.before].after = pooled.after
    if pooled.after == NOWHERE:
        state.last[side] = pooled.before
    else:
        pool[pooled.after].before = pooled.before
    state.waiting[side] -= 1
    # Free entries form a list with the same link, which is not used for entries in use.
    pooled.next = run.free
    run.free = place
    return &pooled.entry


cdef void forget_oldest(Run *run, State *state, int64_t connection, int side) noexcept nogil:
    """Remove the oldest entry of a connection and side."""
    cdef const Entry *oldest = take_out(run, run.pool[state.first[side]].entry.key)
    if side == ASKED:
        run.forgotten[run.forgotten_count].connection = connection
        run.forgotten[run.forgotten_count].index = oldest.index
        run.forgotten_count += 1


cdef void add(Run *run, const Entry *entry) noexcept nogil:
    """Add an entry as the last one of its key, connection and side. There must be room in the pool.

    If too many entries wait, the oldest one is removed.
    """
    cdef int64_t connection = entry.key >> CONNECTION_SHIFT
    cdef int side = entry.key >> SIDE_SHIFT & 1
    cdef State *state = &run.states[connection]
    cdef int64_t place, bucket
    cdef Pooled *pooled
    if state.waiting[side] >= run.most:
        forget_oldest(run, state, connection, side)
    place = run.free
    if place == NOWHERE:
        place = run.used
        run.used += 1
    else:
        run.free = run.pool[place].next
    pooled = &run.pool[place]
    pooled.entry = entry[0]
    pooled.next = pooled.after = NOWHERE
    pooled.before = state.last[side]
    bucket = bucket_of(run, entry.key)
    if run.tails[bucket] == NOWHERE:
        run.heads[bucket] = place
    else:
        run.pool[run.tails[bucket]].next = place
    run.tails[bucket] = place
    if pooled.before == NOWHERE:
        state.first[side] = place
    else:
        run.pool[pooled.before].after = place
    state.last[side] = place
    state.waiting[side] += 1


# Functions for headers.

cdef int64_t client_of(const Run *run, const uint8_t *at, int64_t size) noexcept nogil:
    """Return the number of a client id, or NEW_ID for a new one."""
    cdef uint64_t code = HASH
    cdef int64_t place, number
    cdef const Extent *client
    for place in range(size):
        code = (code ^ at[place]) * HASH_PRIME & HASH_MASK
    code ^= code >> HASH_SHIFT
    while True:
        number = run.clients[<int64_t> (code & <uint64_t> run.client_mask)] - 1
        if number < 0:
            return NEW_ID
        client = &run.client_extents[number]
        if client.size == size and memcmp(client.at, at, size) == 0:
            return number
        code += 1


cdef bint holds_secret(const Run *run, const uint8_t *at, const uint8_t *end) noexcept nogil:
    """Return whether bytes contain one of the secrets."""
    cdef const Extent *secret
    cdef const uint8_t *place
    cdef int which
    for which in range(2):
        secret = &run.secrets[which]
        place = at
        while end - place >= secret.size:
            # This last byte is the rarest one.
            if place[secret.size - 1] == secret.at[secret.size - 1]:
                if memcmp(place, secret.at, secret.size) == 0:
                    return True
            place += 1
    return False


cdef inline bint take_text(Cursor *cursor, bint compact, Extent *text) noexcept nogil:
    """Read a nullable string, whose size is -1 for null."""
    if not read_length(cursor, compact, True, STRING_WIDTH, &text.size):
        return False
    text.at = cursor.at
    return text.size < 0 or take(cursor, text.size) != NULL


cdef bint expects_response(int64_t code, Cursor body) noexcept nogil:
    """Return whether it is certain that a response is expected."""
    cdef int how = code >> ACKS_SHIFT & THREE_BITS
    cdef Extent text
    if how == ALWAYS:
        return True
    if how == ACKS_AFTER_TEXT or how == ACKS_AFTER_COMPACT_TEXT:
        if not take_text(&body, how == ACKS_AFTER_COMPACT_TEXT, &text):
            return False
    elif how != ACKS_FIRST:
        return False
    return left(&body) >= 2 and load_int16(body.at) != 0


cdef bint take_tags(Cursor *cursor, int instance_tag, const uint8_t **instance) noexcept nogil:
    """Read a section of tagged fields that is empty, or has only the client instance id.

    ``instance_tag`` is the tag of this id, or -1. ``instance`` becomes the place of the id.
    """
    cdef const uint8_t *at = cursor.at
    if left(cursor) < 1:
        return False
    if at[0] == 0:
        cursor.at += 1
        return True
    if instance_tag < 0 or left(cursor) < INSTANCE_HEAD + UUID_SIZE:
        return False
    if at[0] != 1 or at[1] != instance_tag or at[2] != UUID_SIZE:
        return False
    instance[0] = at + INSTANCE_HEAD
    cursor.at += INSTANCE_HEAD + UUID_SIZE
    return True


cdef Stop describe(
    Run *run, int64_t row, const uint8_t *begin, Cursor *body, int64_t *code
) noexcept nogil:
    """Read a request's header into the columns, up to its body; return its word in the table."""
    cdef int api_key, version, written
    cdef int64_t client = NO_CLIENT
    cdef const uint8_t *instance = NULL
    cdef Extent text
    if left(body) < REQUEST_START:
        return ODD
    api_key, version = load_int16(begin), load_int16(begin + API_VERSION_AT)
    if not (0 <= api_key < run.keys and 0 <= version < run.versions):
        return ODD
    code[0] = run.table[api_key * run.versions + version]
    if not code[0] & IS_PLAIN:
        return ODD
    body.at += REQUEST_START
    written = code[0] >> CLIENT_SHIFT & TWO_BITS
    if written != NO_TEXT:
        if not take_text(body, written == COMPACT_TEXT, &text):
            return ODD
        if text.size >= 0:
            client = client_of(run, text.at, text.size)
    if code[0] >> TAGS_SHIFT & 1:
        if not take_tags(body, (code[0] >> INSTANCE_SHIFT & SEVEN_BITS) - 1, &instance):
            return ODD
    run.api_key[row], run.api_version[row] = api_key, version
    run.correlation_id[row] = load_int32(begin + CORRELATION_ID_IN_REQUEST)
    run.client[row] = client
    run.header_version[row] = code[0] >> VERSION_SHIFT & TWO_BITS
    run.body_offset[row] = body.at - begin
    run.instance_at[row] = 0 if instance == NULL else instance - begin
    return NEW_CLIENT if client == NEW_ID else GOES_ON


cdef Stop see(
    Run *run, State *state, int64_t row, int64_t code, const uint8_t *begin, const uint8_t *end
) noexcept nogil:
    """Update the state of authentication for a request."""
    cdef int meaning = code >> CLASS_SHIFT & THREE_BITS
    if meaning == HANDSHAKE:
        return TOKENS
    if meaning == NEUTRAL or state.flags & GUARDED:
        return GOES_ON
    if meaning == GUARDS or (meaning == SEARCHED and holds_secret(run, begin, end)):
        state.flags |= GUARDED
    elif not state.flags & OPEN and run.tried != row:
        return OPENS
    return GOES_ON


cdef void ask(Run *run, int64_t connection, const State *state, int64_t row) noexcept nogil:
    """Let a request wait for its response, unless the response came before the request."""
    cdef int64_t correlation_id = run.correlation_id[row]
    cdef const Entry *early
    cdef Later *later
    cdef Entry asked
    asked.key = key_of(connection, ASKED, correlation_id)
    asked.what = <int64_t> run.api_key[row] << API_KEY_SHIFT | run.api_version[row]
    asked.client, asked.time, asked.index = run.client[row], run.time[row], run.index[row]
    while state.waiting[<int> EARLY] > 0:
        early = take_out(run, key_of(connection, EARLY, correlation_id))
        if early == NULL:
            break
        # Other responses belong to requests from before the capture.
        if asked.time <= early.time:
            later = &run.early[run.early_count]
            later.connection, later.index, later.what = connection, early.index, asked.what
            later.client, later.time = asked.client, asked.time
            run.early_count += 1
            return
    add(run, &asked)


# Functions for rows.

cdef inline void learn_client(Run *run, State *state, int64_t row) noexcept nogil:
    """Use the client of this request for later requests of the connection without a client id."""
    if run.client[row] == NO_CLIENT:
        run.client[row] = state.client
    else:
        state.client = run.client[row]


cdef Stop read_request(Run *run, int64_t connection, State *state, int64_t row) noexcept nogil:
    cdef const uint8_t *begin = run.data + run.start[row]
    cdef bint expects = run.expects != 0
    cdef int64_t code = 0
    cdef Cursor body
    cdef Stop why
    if row != run.prepared:
        body.at, body.end = begin, run.data + run.stop[row]
        why = describe(run, row, begin, &body, &code)
        if why == GOES_ON:
            why = see(run, state, row, code, begin, body.end)
        if why != GOES_ON:
            return why
        learn_client(run, state, row)
        if not expects_response(code, body):
            return ASKS
        expects = True
    if expects:
        ask(run, connection, state, row)
    run.is_expected[row], run.kind[row] = expects, REQUEST
    return GOES_ON


cdef void answer(Run *run, int64_t connection, int64_t row) noexcept nogil:
    """Find the request of a response, whose correlation id is in the columns."""
    cdef Entry early
    cdef int64_t correlation_id = run.correlation_id[row]
    cdef const Entry *asked = take_out(run, key_of(connection, ASKED, correlation_id))
    if asked == NULL:
        early.key = key_of(connection, EARLY, correlation_id)
        early.what, early.client = 0, NO_CLIENT
        early.time, early.index = run.time[row], run.index[row]
        add(run, &early)
        run.kind[row] = UNPAIRED
        return
    run.api_key[row] = asked.what >> API_KEY_SHIFT
    run.api_version[row] = asked.what & VERSION_MASK
    run.client[row], run.request_time[row] = asked.client, asked.time
    run.kind[row] = ANSWER


cdef Stop read_response(Run *run, int64_t connection, int64_t row) noexcept nogil:
    if run.stop[row] - run.start[row] < RESPONSE_START:
        return ODD
    run.correlation_id[row] = load_int32(run.data + run.start[row])
    answer(run, connection, row)
    return GOES_ON


cdef void take_given(Run *run, int64_t connection, State *state, int64_t row) noexcept nogil:
    """Process a row whose results are already in the columns."""
    if run.is_response[row]:
        answer(run, connection, row)
        return
    if not state.flags & GUARDED:
        state.flags |= run.flags[row] & (OPEN | GUARDED)
    learn_client(run, state, row)
    if run.is_expected[row]:
        ask(run, connection, state, row)


cdef Stop read_row(Run *run, int64_t connection, State *state, int64_t row) noexcept nogil:
    if is_full(run):
        return FULL
    if run.given[row]:
        take_given(run, connection, state, row)
        return GOES_ON
    if run.errors[row]:
        return ODD
    if run.is_response[row]:
        return read_response(run, connection, row)
    return read_request(run, connection, state, row)


cdef Stop read_rows(Run *run) noexcept nogil:
    """Read rows, starting with the next one.

    Rows of connections that are `BY_OBJECTS` are skipped.
    """
    cdef int64_t connection, flags
    cdef State *state
    cdef Stop why
    while run.at < run.end:
        connection = run.numbers[run.connection[run.at]]
        state = &run.states[connection]
        if not state.flags & BY_OBJECTS:
            why = read_row(run, connection, state, run.at)
            if why != GOES_ON:
                return why
            flags = state.flags & (OPEN | GUARDED)
            run.flags[run.at], run.guarded[run.at] = flags, flags != OPEN
        run.at += 1
    return AT_END


cdef int64_t drain_all(Run *run) noexcept nogil:
    """Remove all entries of a connection, or of all connections: requests first, oldest first."""
    cdef int64_t first = 0 if run.whose == ALL else run.whose
    cdef int64_t last = run.count if run.whose == ALL else run.whose + 1
    cdef int64_t connection
    cdef int64_t taken = 0
    cdef State *state
    cdef int side
    for connection in range(first, last):
        state = &run.states[connection]
        for side in range(2):
            while state.waiting[side] > 0:
                run.entries[taken] = take_out(run, run.pool[state.first[side]].entry.key)[0]
                taken += 1
    return taken


# All of these are called with the address of a run, and run without the GIL.

def read(size_t run):
    """Read rows; return the reason for stopping, which is a `Stop`."""
    cdef Stop why
    with nogil:
        why = read_rows(<Run *> run)
    return <int> why


def drain(size_t run):
    """Move entries to the place that the run names; return how many there were."""
    cdef int64_t count
    with nogil:
        count = drain_all(<Run *> run)
    return count


def restore(size_t run):
    """Add the entries of a run. There must be room for them."""
    cdef Run *words = <Run *> run
    cdef int64_t index
    with nogil:
        for index in range(words.count):
            add(words, &words.entries[index])
