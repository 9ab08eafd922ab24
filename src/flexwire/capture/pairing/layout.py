"""The memory of the kernel for headers and pairs, and its numbers.

`kernels/pairing.pyx` has the same, and a test compares them.
"""

from __future__ import annotations

import ctypes

# Where the head of every request lies, and of every response: it begins with a correlation id.
API_VERSION_AT, REQUEST_HEAD = 2, 8


class PairingWords(ctypes.Structure):
    """The inputs and outputs of a run; pointers are addresses.

    Of frames, columns of ``end`` rows, of which ``at`` is the next; ``numbers`` says for a frame's
    connection which of the states is its. ``errors`` marks frames with an error. ``kind`` to
    ``flags`` are columns for what is read. A request that was taken in elsewhere stands in them in
    row ``prepared``, and ``expects`` says whether it expects a response; in row ``tried`` the body
    does not rule out authentication. ``forgotten`` and ``early`` are tables with room for all rows,
    of requests that gave up waiting and of responses whose request came later. What rows marked in
    ``given`` say stands in the columns already, ``flags`` included; other rows get there the flags
    that their connection has after them.

    ``table`` has ``versions`` words for each of ``keys`` api keys. ``clients`` is a hash table of
    the numbers of client ids + 1, ``client_extents`` says for each number where its bytes are. A
    request must hold none of the ``secrets``, two runs of bytes, if it is of the class SEARCHED.

    What waits: the ``states`` of connections, a ``pool`` of entries with room for ``capacity``, and
    a hash table of chains with ``heads`` and ``tails``. ``entries`` are taken out or put in,
    ``count`` of them; those of the connection ``whose``, or ALL.
    """

    _fields_ = tuple(
        (name, ctypes.c_int64)
        for name in (
            *("data", "at", "end", "connection", "is_response", "index", "time", "start", "stop"),
            *("errors", "numbers", "kind", "api_key", "api_version", "correlation_id", "client"),
            *("header_version", "body_offset", "instance_at", "request_time", "is_expected"),
            *("guarded", "flags", "given", "prepared", "expects", "tried"),
            *("forgotten", "forgotten_count", "early", "early_count"),
            *("table", "keys", "versions", "clients", "client_mask", "client_extents", "secrets"),
            *("states", "pool", "capacity", "used", "free", "heads", "tails", "mask", "most"),
            *("entries", "count", "whose"),
        )
    )


ALL = -1

# Why reading stopped, before row ``at``: all rows are read; the row is not plain; its client id is
# a new one; whether its body decodes, or whether it expects a response, is to be found out; bare
# tokens may follow it; the pool is full.
(AT_END, ODD, NEW_CLIENT, OPENS, ASKS, TOKENS, FULL) = range(7)

# What a row is: nothing was read of it; a request; a response without its request, and with it.
(UNREAD, REQUEST, UNPAIRED, ANSWER) = range(4)

# A word of the table of apis: whether it is plain, the header's version, how its client id is
# written, whether tagged fields follow, what it means for authentication, where acks stand, and the
# tag of the client instance id + 1 if that is all that Kafka knows among the tagged fields.
IS_PLAIN = 1
VERSION_SHIFT, CLIENT_SHIFT, TAGS_SHIFT, CLASS_SHIFT, ACKS_SHIFT = 1, 3, 5, 6, 9
INSTANCE_SHIFT = 12
TWO_BITS, THREE_BITS, SEVEN_BITS = 3, 7, 127
# How a text is written.
(NO_TEXT, TEXT, COMPACT_TEXT) = range(3)
# Of authentication: it may go on; it begins; it is ruled out by a request that decodes, and by one
# that does not hold any of the secrets either; after this request bare tokens may follow.
(NEUTRAL, GUARDS, RULES_OUT, SEARCHED, HANDSHAKE) = range(5)
# A response is expected always; unless the int16 at the body's start, or after its first text, is
# 0; or that has to be asked.
(ALWAYS, ACKS_FIRST, ACKS_AFTER_TEXT, ACKS_AFTER_COMPACT_TEXT, ACKS_UNKNOWN) = range(5)

# The int64 columns of a run of bytes: where, and how many.
EXTENT = 2
# Those of the state of a connection, of which two kinds of entries wait: requests, and responses
# without a request. Behind these two are of each kind how many there are, the first and the last.
STATE, FLAGS, CLIENT, WAITING, FIRST = 8, 0, 1, 2, 4
OPEN, GUARDED, BY_OBJECTS = 1, 2, 4
(ASKED, EARLY) = range(2)

# Those of an entry that waits. In the pool there are three more, its places in the chain of its
# bucket and among the entries of its connection.
ENTRY, POOLED = 5, 8
KEY, WHAT, ENTRY_CLIENT, TIME, INDEX = range(ENTRY)
# A key is a connection, the kind, and a correlation id of 32 bits.
CONNECTION_SHIFT, SIDE_SHIFT = 33, 32
CORRELATION_MASK = (1 << SIDE_SHIFT) - 1
# Of what: the api key is above the version.
API_KEY_SHIFT, VERSION_MASK = 16, 0xFFFF
NOWHERE = -1
NO_CLIENT = -1

# Those of a row of ``forgotten``: the connection and the index; and of ``early``: these, what the
# request is, its client id and its time.
FORGOT, LATER = 2, 5
