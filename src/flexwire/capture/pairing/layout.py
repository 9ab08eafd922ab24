"""The memory layout of the kernel for headers and pairs, and the numbers that it uses.

`kernels/pairing.pyx` has the same layout. A test compares the two layouts.
"""

from __future__ import annotations

import ctypes

# The offsets of fields at the start of every request and response. A response begins with its
# correlation id.
API_VERSION_AT, REQUEST_HEAD = 2, 8


class PairingWords(ctypes.Structure):
    """The inputs and outputs of one kernel run. Pointers are given as addresses.

    The columns of frames have ``end`` rows, and ``at`` is the next row. ``numbers`` contains the
    number of the state of each frame's connection. ``errors`` marks frames with an error. ``kind``
    to ``flags`` are the columns for the results. Row ``prepared`` is a request that was processed
    elsewhere, and ``expects`` indicates whether it expects a response. For row ``tried``, it is
    already known that the body does not rule out authentication. ``forgotten`` and ``early`` are
    tables with room for all rows: the former for requests that stopped waiting, the latter for
    responses whose request was captured later. For the rows marked in ``given``, the columns
    already contain the results, including ``flags``. For all other rows, ``flags`` is set to the
    flags that the row's connection has after that row.

    ``table`` contains ``versions`` words for each of ``keys`` api keys. ``clients`` is a hash table
    that contains the numbers of client ids, plus 1. ``client_extents`` contains the place of each
    number's bytes. A request of the class SEARCHED must not contain either of the ``secrets``,
    which are two byte strings.

    The waiting frames are kept in the ``states`` of connections, in a ``pool`` of entries with room
    for ``capacity``, and in a hash table of chains with ``heads`` and ``tails``. ``count`` entries
    are moved from the pool to ``entries``, or back. The moved entries belong to the connection
    ``whose``, or to ALL connections.
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

# The reasons for stopping before row ``at``: all rows have been read; the row is not plain; its
# client id is new; the caller must find out whether its body decodes, or whether it expects a
# response; raw tokens may follow it; the pool is full.
(AT_END, ODD, NEW_CLIENT, OPENS, ASKS, TOKENS, FULL) = range(7)

# The kinds of rows: a row that has not been read; a request; a response without its request; a
# response with its request.
(UNREAD, REQUEST, UNPAIRED, ANSWER) = range(4)

# The parts of a word in the API table: whether the request is plain, the header's version, the
# client id's format, whether tagged fields follow, the effect on authentication, the place of acks,
# and the tag of the client instance id plus 1 if that is the only tagged field that Kafka knows.
IS_PLAIN = 1
VERSION_SHIFT, CLIENT_SHIFT, TAGS_SHIFT, CLASS_SHIFT, ACKS_SHIFT = 1, 3, 5, 6, 9
INSTANCE_SHIFT = 12
TWO_BITS, THREE_BITS, SEVEN_BITS = 3, 7, 127
# The formats of a string.
(NO_TEXT, TEXT, COMPACT_TEXT) = range(3)
# The effects on authentication: it may continue; it begins; it is ruled out by a request that
# decodes; it is ruled out by a request that decodes and contains none of the secrets; raw tokens
# may follow this request.
(NEUTRAL, GUARDS, RULES_OUT, SEARCHED, HANDSHAKE) = range(5)
# When a response is expected: always; if the int16 at the start of the body is not 0; if the int16
# after the body's first string, or after its first compact string, is not 0; if the caller says so.
(ALWAYS, ACKS_FIRST, ACKS_AFTER_TEXT, ACKS_AFTER_COMPACT_TEXT, ACKS_UNKNOWN) = range(5)

# The int64 columns that describe a byte string: its start and its size.
EXTENT = 2
# The columns that describe a connection's state. There are two kinds of waiting entries: requests,
# and responses without a request. After the first two columns come, for each kind, the number of
# entries, the first entry and the last entry.
STATE, FLAGS, CLIENT, WAITING, FIRST = 8, 0, 1, 2, 4
OPEN, GUARDED, BY_OBJECTS = 1, 2, 4
(ASKED, EARLY) = range(2)

# The columns of a waiting entry. In the pool, an entry has three more columns: its places in its
# bucket's chain, and among the entries of its connection.
ENTRY, POOLED = 5, 8
KEY, WHAT, ENTRY_CLIENT, TIME, INDEX = range(ENTRY)
# A key consists of a connection, a kind, and a 32-bit correlation id.
CONNECTION_SHIFT, SIDE_SHIFT = 33, 32
CORRELATION_MASK = (1 << SIDE_SHIFT) - 1
# The API and version of the request. The api key occupies the higher bits.
API_KEY_SHIFT, VERSION_MASK = 16, 0xFFFF
NOWHERE = -1
NO_CLIENT = -1

# The columns of ``forgotten`` are the connection and the index. The columns of ``early`` are the
# same, followed by the request's API and version, its client id and its time.
FORGOT, LATER = 2, 5
