"""The words of one run of the kernels for headers and pairs: what they find where in memory.

All are offsets in bytes from the address of what they belong to. A kernel file takes them as
constants, so a change here is a change of the kernels.
"""

from __future__ import annotations

# Where the head of every request lies, and of every response: it begins with a correlation id.
API_KEY_AT, API_VERSION_AT, REQUEST_HEAD = 0, 2, 8
RESPONSE_HEAD = 4

# What a run takes and gives. Of frames, columns of T_END rows, of which T_AT is the next; T_NUMBERS
# says for a frame's connection which of the states is its. T_ERRORS marks frames with an error.
# T_KIND to T_GUARDED are columns for what is read. A request that was taken in elsewhere stands in
# them in row T_PREPARED, and T_EXPECTS says whether it expects a response; in row T_TRIED the body
# does not rule out authentication. T_FORGOTTEN and T_EARLY are tables with room for all rows, of
# requests that gave up waiting and of responses whose request came later. What rows marked in
# T_GIVEN say stands in the columns already, T_FLAGS included; other rows get there the flags that
# their connection has after them.
TURNS = 392
(
    T_DATA,
    T_AT,
    T_END,
    T_CONNECTION,
    T_IS_RESPONSE,
    T_INDEX,
    T_TIME,
    T_START,
    T_STOP,
    T_ERRORS,
    T_NUMBERS,
    T_KIND,
    T_API_KEY,
    T_API_VERSION,
    T_CORRELATION_ID,
    T_CLIENT,
    T_HEADER_VERSION,
    T_BODY_OFFSET,
    T_REQUEST_TIME,
    T_IS_EXPECTED,
    T_GUARDED,
    T_FLAGS,
    T_GIVEN,
    T_PREPARED,
    T_EXPECTS,
    T_TRIED,
    T_FORGOTTEN,
    T_FORGOTTEN_COUNT,
    T_EARLY,
    T_EARLY_COUNT,
    # The table of apis: T_VERSIONS words for each of T_KEYS api keys.
    T_TABLE,
    T_KEYS,
    T_VERSIONS,
    # Client ids: a hash table of their numbers + 1, and for each number where its bytes are.
    T_CLIENTS,
    T_CLIENT_MASK,
    T_CLIENT_EXTENTS,
    # What a request must not hold, if it is of the class SEARCHED: two runs of bytes.
    T_SECRETS,
    # What waits: T_STATES of connections, a pool of entries, and a hash table of chains.
    T_STATES,
    T_POOL,
    T_CAPACITY,
    T_USED,
    T_FREE,
    T_HEADS,
    T_TAILS,
    T_MASK,
    T_MOST,
    # Entries taken out or put in, T_COUNT of them; those of the connection T_WHOSE, or all.
    T_ENTRIES,
    T_COUNT,
    T_WHOSE,
) = range(0, TURNS, 8)
ALL = -1

# Why reading stopped, before row T_AT: all rows are read; the row is not plain; its client id is a
# new one; whether its body decodes, or whether it expects a response, is to be found out; bare
# tokens may follow it; the pool is full.
(AT_END, ODD, NEW_CLIENT, OPENS, ASKS, TOKENS, FULL) = range(7)

# What a row is: nothing was read of it; a request; a response without its request, and with it.
(UNREAD, REQUEST, UNPAIRED, ANSWER) = range(4)

# A word of the table of apis: whether it is plain, the header's version, how its client id is
# written, whether tagged fields follow, what it means for authentication, where acks stand.
IS_PLAIN = 1
VERSION_SHIFT, CLIENT_SHIFT, TAGS_SHIFT, CLASS_SHIFT, ACKS_SHIFT = 1, 3, 5, 6, 9
TWO_BITS, THREE_BITS = 3, 7
# How a text is written.
(NO_TEXT, TEXT, COMPACT_TEXT) = range(3)
# Of authentication: it may go on; it begins; it is ruled out by a request that decodes, and by one
# that does not hold any of T_SECRETS either; after this request bare tokens may follow.
(NEUTRAL, GUARDS, RULES_OUT, SEARCHED, HANDSHAKE) = range(5)
# A response is expected always; unless the int16 at the body's start, or after its first text, is
# 0; or that has to be asked.
(ALWAYS, ACKS_FIRST, ACKS_AFTER_TEXT, ACKS_AFTER_COMPACT_TEXT, ACKS_UNKNOWN) = range(5)

# A run of bytes: where and how many.
EXTENT = 16

# The state of a connection. Two kinds of entries wait: requests, and responses without a request;
# of each kind how many there are, the first and the last.
STATE = 64
S_FLAGS, S_CLIENT, S_WAITING, S_FIRST, S_LAST = 0, 8, 16, 32, 48
OPEN, GUARDED, BY_OBJECTS = 1, 2, 4
SIDE = 8
(ASKED, EARLY) = range(2)

# An entry that waits: its key, api key and version, client id, time and index, and its places: in
# the chain of its bucket and among the entries of its connection. The first ENTRY bytes are kept.
ENTRY, POOLED = 40, 64
E_KEY, E_WHAT, E_CLIENT, E_TIME, E_INDEX, E_NEXT, E_BEFORE, E_AFTER = range(0, POOLED, 8)
# A key is a connection, the kind, and a correlation id of 32 bits.
CONNECTION_SHIFT, SIDE_SHIFT = 33, 32
CORRELATION_MASK = (1 << SIDE_SHIFT) - 1
# Of what: the api key is above the version.
API_KEY_SHIFT, VERSION_MASK = 16, 0xFFFF
NOWHERE = -1
NO_CLIENT = -1

# A row of T_FORGOTTEN, and one of T_EARLY: what the request says of a response given out before.
FORGOT = 16
F_CONNECTION, F_INDEX = range(0, FORGOT, 8)
LATER = 40
L_CONNECTION, L_INDEX, L_WHAT, L_CLIENT, L_TIME = range(0, LATER, 8)

# Copying runs of bytes one after the other: G_COUNT rows, from G_START in G_DATA to G_OFFSETS.
GATHER = 40
G_DATA, G_START, G_OFFSETS, G_OUT, G_COUNT = range(0, GATHER, 8)
