"""The hash of a value: words are added one by one, and at the end every bit depends on all others.

The hash is never stored or sent. Only a process and its workers use it to distinguish values.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    TAKE_SHIFT = 29
    MIX_SHIFT = 33

cdef extern from *:
    """
    #define TAKE 0x1E3779B97F4A7C15ULL
    #define FIRST_MIX 0x7F51AFD7ED558CCDULL
    #define SECOND_MIX 0x44CEB9FE1A85EC53ULL
    """
    const uint64_t TAKE, FIRST_MIX, SECOND_MIX


cdef inline uint64_t word_at(const uint8_t *at) noexcept nogil:
    """Return the eight bytes at an address as a number in this machine's byte order."""
    cdef uint64_t word
    memcpy(&word, at, 8)
    return word


cdef inline uint64_t last_word(const uint8_t *at, int rest) noexcept nogil:
    """Return the last bytes of a value (1 to 7 of them), with zeros above them."""
    cdef uint64_t word = 0
    cdef int place
    for place in range(rest):
        word |= <uint64_t> at[place] << (8 * place)
    return word


cdef inline uint64_t taken(uint64_t code, uint64_t word) noexcept nogil:
    """Return the hash after adding a word."""
    code = (code ^ word) * TAKE
    return code ^ code >> TAKE_SHIFT


cdef inline uint64_t mixed(uint64_t code) noexcept nogil:
    """Return the final form of the hash."""
    code = (code ^ code >> MIX_SHIFT) * FIRST_MIX
    code = (code ^ code >> MIX_SHIFT) * SECOND_MIX
    return code ^ code >> MIX_SHIFT
