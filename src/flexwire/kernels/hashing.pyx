"""Hashes the values in a column of bytes, and determines for each whether it is UTF-8.

The input is any column with int32 offsets, and no column is refused. The caller has checked the
offsets.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

cdef extern from "text.h" nogil:
    const uint64_t HIGH_BITS
    bint is_utf8(const uint8_t *at, int64_t size)


cdef uint64_t hash_value(const uint8_t *at, int64_t size, uint8_t *is_text) noexcept nogil:
    """Return the hash of one value, as `flexwire.measures.counters.hash_of` does."""
    cdef uint64_t code = <uint64_t> size * TAKE
    cdef uint64_t seen = 0
    cdef uint64_t word
    cdef int64_t place = 0
    while size - place >= 8:
        word = word_at(at + place)
        seen |= word
        code = taken(code, word)
        place += 8
    if place < size:
        word = last_word(at + place, <int> (size - place))
        seen |= word
        code = taken(code, word)
    is_text[0] = seen & HIGH_BITS == 0 or is_utf8(at, size)
    return mixed(code)


def hash_values(
    const uint8_t[::1] data, const int32_t[::1] offsets, uint64_t[::1] hashes, uint8_t[::1] texts
):
    """Put the hash of each value into ``hashes``, and 1 into ``texts`` if it is UTF-8, or else 0.

    ``offsets`` has the start of each value in ``data``, and the end of the last one.
    """
    cdef Py_ssize_t row
    cdef const uint8_t *at = &data[0]
    with nogil:
        for row in range(hashes.shape[0]):
            hashes[row] = hash_value(
                at + offsets[row], offsets[row + 1] - offsets[row], &texts[row]
            )
