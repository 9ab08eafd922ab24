/* What Cython has no words for: loads in the wire's byte order, and what must not be inlined. */
#ifndef FLEXWIRE_CURSOR_H
#define FLEXWIRE_CURSOR_H
#include <stdint.h>
#include <string.h>

/* Cython's `inline` is a wish; kernels are written of parts that have no cost only where they are. */
#undef CYTHON_INLINE
#define CYTHON_INLINE inline __attribute__((always_inline))

#define LOADER(name, type, bits)                                              \
    static inline type name(const uint8_t *at) {                              \
        uint##bits##_t raw;                                                   \
        memcpy(&raw, at, sizeof raw);                                         \
        return (type)__builtin_bswap##bits(raw);                              \
    }
LOADER(load_int16, int16_t, 16)
LOADER(load_uint16, uint16_t, 16)
LOADER(load_int32, int32_t, 32)
LOADER(load_uint32, uint32_t, 32)
LOADER(load_int64, int64_t, 64)

#define STORER(name, bits)                                                    \
    static inline void name(uint8_t *at, uint##bits##_t raw) {                \
        raw = __builtin_bswap##bits(raw);                                     \
        memcpy(at, &raw, sizeof raw);                                         \
    }
STORER(store_uint16, 16)
STORER(store_uint32, 32)
STORER(store_uint64, 64)

/* Stores numbers of four bytes side by side, two at a time. */
static inline void store_uint32s(uint8_t *at, const uint8_t *source, int64_t count) {
    uint64_t both;
    uint32_t raw;
    for (; count >= 2; count -= 2, at += 8, source += 8) {
        memcpy(&both, source, sizeof both);
        both = __builtin_bswap64(both);
        both = both >> 32 | both << 32;
        memcpy(at, &both, sizeof both);
    }
    if (count) {
        memcpy(&raw, source, sizeof raw);
        store_uint32(at, raw);
    }
}

static inline double load_float64(const uint8_t *at) {
    int64_t raw = load_int64(at);
    double number;
    memcpy(&number, &raw, sizeof number);
    return number;
}

static inline void copy_chunks(uint8_t *target, const uint8_t *source, int64_t size) {
    memcpy(target, source, 32);
    if (size <= 32) return;
    memcpy(target + 32, source + 32, 32);
    for (int64_t done = 64; done < size; done += 64) memcpy(target + done, source + done, 64);
}

typedef struct { const uint8_t *at, *end; } Cursor;
typedef struct { uint64_t value; const uint8_t *after; } Number;

static __attribute__((noinline, cold, unused)) Number
read_groups(const uint8_t *at, const uint8_t *end, int groups, int last) {
    Number number = {0, NULL};
    for (int group = 0; group < groups && at < end; group++) {
        uint8_t byte = *at++;
        number.value |= (uint64_t)(byte & 0x7F) << (7 * group);
        if (byte < 0x80) {
            if ((byte || !group) && (group < groups - 1 || byte <= last)) number.after = at;
            return number;
        }
    }
    return number;
}

/* How many bytes a number takes in groups of 7 bits. */
static inline int groups_of(uint64_t raw) {
    return (70 - __builtin_clzll(raw | 1)) / 7;
}

static __attribute__((noinline, cold, unused)) uint8_t *put_groups(uint8_t *at, uint64_t raw) {
    for (; raw >= 0x80; raw >>= 7) *at++ = (uint8_t)(raw | 0x80);
    *at++ = (uint8_t)raw;
    return at;
}

/* Every second bit of a number, from the lowest on: 32 bits. And the other way. */
static inline int64_t gather(uint64_t value) {
    value &= 0x5555555555555555;
    value = (value | value >> 1) & 0x3333333333333333;
    value = (value | value >> 2) & 0x0F0F0F0F0F0F0F0F;
    value = (value | value >> 4) & 0x00FF00FF00FF00FF;
    value = (value | value >> 8) & 0x0000FFFF0000FFFF;
    return (int64_t)((value | value >> 16) & 0xFFFFFFFF);
}
static inline uint64_t spread(uint64_t value) {
    value = (value | value << 16) & 0x0000FFFF0000FFFF;
    value = (value | value << 8) & 0x00FF00FF00FF00FF;
    value = (value | value << 4) & 0x0F0F0F0F0F0F0F0F;
    value = (value | value << 2) & 0x3333333333333333;
    return (value | value << 1) & 0x5555555555555555;
}
#endif
