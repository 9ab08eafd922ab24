"""The memory of the kernel for headers and pairs, and its numbers.

`kernels/pairing.pyx` has the same layout, and a test compares them.
"""

from __future__ import annotations

import ctypes

# The offsets of the beginning of every request and response; a response begins with its correlation
# id.
API_VERSION_AT, REQUEST_HEAD = 2, 8


class PairingWords(ctypes.Structure):
    """The inputs and outputs of a run; pointers are addresses.

    Frames are columns of ``end`` rows, of which ``at`` is the next one. ``numbers`` has the number
    of the state of each frame's connection. ``errors`` marks frames with an error. ``kind`` to
    ``flags`` are columns for the results. Row ``prepared`` has a request that was processed
    elsewhere, and ``expects`` says whether it expects a response. In row ``tried`` the body does
    not rule out authentication. ``forgotten`` and ``early`` are tables with room for all rows:
    requests that stopped waiting, and responses whose request came later. The columns already have
    the results of rows that are marked in ``given``, including ``flags``. Other rows get there the
    flags that their connection has after them.

    ``table`` has ``versions`` words for each of ``keys`` api keys. ``clients`` is a hash table of
    the numbers of client ids + 1. ``client_extents`` says where the bytes of each number are. If a
    request is of the class SEARCHED, it must contain none of the ``secrets``, two runs of bytes.

    Waiting frames: the ``states`` of connections, a ``pool`` of entries with room for ``capacity``,
    and a hash table of chains with ``heads`` and ``tails``. ``count`` entries are taken out of
    ``entries`` or put in; they are those of the connection ``whose``, or ALL.
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
# new; the caller must find out whether its body decodes, or whether it expects a response; bare
# tokens may follow it; the pool is full.
(AT_END, ODD, NEW_CLIENT, OPENS, ASKS, TOKENS, FULL) = range(7)

# The kind of a row: it was not read; a request; a response without its request; one with it.
(UNREAD, REQUEST, UNPAIRED, ANSWER) = range(4)

# A word of the table of apis: whether it is plain, the header's version, the client id's format,
# whether tagged fields follow, its effect on authentication, where acks stand, and the tag of the
# client instance id + 1 if that is the only tagged field that Kafka knows.
IS_PLAIN = 1
VERSION_SHIFT, CLIENT_SHIFT, TAGS_SHIFT, CLASS_SHIFT, ACKS_SHIFT = 1, 3, 5, 6, 9
INSTANCE_SHIFT = 12
TWO_BITS, THREE_BITS, SEVEN_BITS = 3, 7, 127
# The formats of a text.
(NO_TEXT, TEXT, COMPACT_TEXT) = range(3)
# Effects on authentication: it may continue; it begins; it is ruled out by a request that decodes;
# by one that also contains none of the secrets; after this request bare tokens may follow.
(NEUTRAL, GUARDS, RULES_OUT, SEARCHED, HANDSHAKE) = range(5)
# A response is always expected; it is unless the int16 at the body's start, or after its first
# text, is 0; or the caller must be asked.
(ALWAYS, ACKS_FIRST, ACKS_AFTER_TEXT, ACKS_AFTER_COMPACT_TEXT, ACKS_UNKNOWN) = range(5)

# The int64 columns of a run of bytes: its start and its size.
EXTENT = 2
# The columns of the state of a connection. It has two kinds of waiting entries: requests, and
# responses without a request. After the first two, each kind has its count, its first and its last.
STATE, FLAGS, CLIENT, WAITING, FIRST = 8, 0, 1, 2, 4
OPEN, GUARDED, BY_OBJECTS = 1, 2, 4
(ASKED, EARLY) = range(2)

# The columns of a waiting entry. In the pool there are three more: its places in the chain of its
# bucket and among the entries of its connection.
ENTRY, POOLED = 5, 8
KEY, WHAT, ENTRY_CLIENT, TIME, INDEX = range(ENTRY)
# A key is a connection, the kind, and a correlation id of 32 bits.
CONNECTION_SHIFT, SIDE_SHIFT = 33, 32
CORRELATION_MASK = (1 << SIDE_SHIFT) - 1
# The request's API and version: the api key is in the higher bits.
API_KEY_SHIFT, VERSION_MASK = 16, 0xFFFF
NOWHERE = -1
NO_CLIENT = -1

# The columns of ``forgotten``: the connection and the index. Those of ``early``: the same, then the
# request's API and version, its client id and its time.
FORGOT, LATER = 2, 5
