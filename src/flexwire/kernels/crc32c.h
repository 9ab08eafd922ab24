/* CRC-32C: by the processor's instruction where it has it (asked once), else by tables.
   Three stretches are done side by side, as the instruction takes three cycles and one begins each. */
#ifndef FLEXWIRE_CRC32C_H
#define FLEXWIRE_CRC32C_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static uint32_t crc32c_tables[8][256];

static uint32_t crc32c_by_tables(uint32_t crc, const uint8_t *at, const uint8_t *end) {
    while (end - at >= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        word ^= crc;
        crc = 0;
        for (int byte = 0; byte < 8; byte++) crc ^= crc32c_tables[7 - byte][word >> 8 * byte & 0xFF];
        at += 8;
    }
    while (at < end) crc = crc >> 8 ^ crc32c_tables[0][(crc ^ *at++) & 0xFF];
    return crc;
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#include <wmmintrin.h>
#define CRC32C_TARGET __attribute__((target("sse4.2,crc32,pclmul")))
#define CRC32C_STEP(crc, word) _mm_crc32_u64(crc, word)
#define CRC32C_BYTE(crc, byte) _mm_crc32_u8(crc, byte)
static inline CRC32C_TARGET uint64_t crc32c_multiply(uint64_t left, uint64_t right) {
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(left), _mm_cvtsi64_si128(right), 0);
    return _mm_cvtsi128_si64(product);
}
static int crc32c_is_there(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2) && (c & bit_PCLMUL);
}
#elif defined(__aarch64__) && defined(__linux__)
#include <arm_acle.h>
#include <arm_neon.h>
#include <sys/auxv.h>
#define CRC32C_TARGET __attribute__((target("+crc+crypto")))
#define CRC32C_STEP(crc, word) __crc32cd(crc, word)
#define CRC32C_BYTE(crc, byte) __crc32cb(crc, byte)
static inline CRC32C_TARGET uint64_t crc32c_multiply(uint64_t left, uint64_t right) {
    return vgetq_lane_u64(vreinterpretq_u64_p128(vmull_p64(left, right)), 0);
}
static int crc32c_is_there(void) { return (getauxval(16) & 0x90) == 0x90; } /* CRC32 | PMULL */
#endif

#ifdef CRC32C_TARGET
/* x to a power, modulo the polynomial. To 8 * size - 33 it moves a remainder `size` bytes on. */
static uint32_t crc32c_power(int power) {
    uint32_t remainder = 1u << 31;
    while (power--) remainder = remainder >> 1 ^ (remainder & 1 ? 0x82F63B78u : 0);
    return remainder;
}
enum { CRC32C_LONG = 512, CRC32C_SHORT = 64 };
static uint32_t crc32c_moves[4];

static inline CRC32C_TARGET uint64_t
crc32c_three(uint64_t crc, const uint8_t *at, int size, const uint32_t *moves) {
    uint64_t second = 0, third = 0, word_of_first, word_of_second, word_of_third;
    for (const uint8_t *stop = at + size; at < stop; at += 8) {
        memcpy(&word_of_first, at, 8);
        memcpy(&word_of_second, at + size, 8);
        memcpy(&word_of_third, at + 2 * size, 8);
        crc = CRC32C_STEP(crc, word_of_first);
        second = CRC32C_STEP(second, word_of_second);
        third = CRC32C_STEP(third, word_of_third);
    }
    uint64_t moved = crc32c_multiply(crc, moves[1]) ^ crc32c_multiply(second, moves[0]);
    return CRC32C_STEP(0, moved) ^ third;
}

static CRC32C_TARGET uint32_t
crc32c_by_instruction(uint32_t begin, const uint8_t *at, const uint8_t *end) {
    uint64_t crc = begin, word;
    for (; end - at >= 3 * CRC32C_LONG; at += 3 * CRC32C_LONG) {
        /* Three stretches are three places at once, which processors do not foresee. */
        for (int line = 0; line < 3 * CRC32C_LONG; line += 64)
            __builtin_prefetch(at + 12 * CRC32C_LONG + line);
        crc = crc32c_three(crc, at, CRC32C_LONG, crc32c_moves);
    }
    for (; end - at >= 3 * CRC32C_SHORT; at += 3 * CRC32C_SHORT)
        crc = crc32c_three(crc, at, CRC32C_SHORT, crc32c_moves + 2);
    for (; end - at >= 8; at += 8) {
        memcpy(&word, at, 8);
        crc = CRC32C_STEP(crc, word);
    }
    while (at < end) crc = CRC32C_BYTE((uint32_t)crc, *at++);
    return (uint32_t)crc;
}
#endif

#if defined(__x86_64__)
/* Vectors of four pairs of words, four side by side, folded by carry-less products: a pair moved on
   by some bytes is the sum of its words' products with two remainders. */
#include <immintrin.h>
#define CRC32C_WIDE __attribute__((target("avx512f,vpclmulqdq,sse4.2,crc32,pclmul")))
enum { CRC32C_VECTOR = 64, CRC32C_BLOCK = 4 * CRC32C_VECTOR };
static uint64_t crc32c_by[5][8]; /* what moves pairs on by one, two, three and four vectors; to the last pair */

static inline CRC32C_WIDE __m512i crc32c_moved(__m512i vector, const uint64_t *by) {
    __m512i moves = _mm512_loadu_si512(by);
    return _mm512_xor_si512(_mm512_clmulepi64_epi128(vector, moves, 0x00),
                            _mm512_clmulepi64_epi128(vector, moves, 0x11));
}
static inline CRC32C_WIDE __m512i crc32c_load(const uint8_t *at) { return _mm512_loadu_si512(at); }

static CRC32C_WIDE uint32_t crc32c_by_vectors(uint32_t crc, const uint8_t *at, const uint8_t *end) {
    if (end - at < CRC32C_BLOCK) return crc32c_by_instruction(crc, at, end);
    __m512i vectors[4], sum;
    for (int index = 0; index < 4; index++) vectors[index] = crc32c_load(at + index * CRC32C_VECTOR);
    vectors[0] = _mm512_xor_si512(vectors[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
    for (at += CRC32C_BLOCK; end - at >= CRC32C_BLOCK; at += CRC32C_BLOCK)
        for (int index = 0; index < 4; index++)
            vectors[index] = _mm512_xor_si512(crc32c_moved(vectors[index], crc32c_by[3]),
                                            crc32c_load(at + index * CRC32C_VECTOR));
    sum = vectors[3];
    for (int index = 0; index < 3; index++)
        sum = _mm512_xor_si512(sum, crc32c_moved(vectors[index], crc32c_by[2 - index]));
    uint64_t last[8], moved[8], remainder;
    _mm512_storeu_si512(last, sum);
    _mm512_storeu_si512(moved, crc32c_moved(sum, crc32c_by[4]));
    remainder = _mm_crc32_u64(0, moved[0] ^ moved[2] ^ moved[4] ^ last[6]);
    remainder = _mm_crc32_u64(remainder, moved[1] ^ moved[3] ^ moved[5] ^ last[7]);
    return crc32c_by_instruction((uint32_t)remainder, at, end);
}

static int crc32c_is_wide(void) {
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & 0xE6) == 0xE6 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & 1u << 16) && (c & 1u << 10);
}

static void crc32c_begin_wide(void) {
    for (int pair = 0; pair < 4; pair++) {
        for (int by = 0; by < 4; by++) {
            crc32c_by[by][2 * pair] = crc32c_power(8 * (by + 1) * CRC32C_VECTOR + 31);
            crc32c_by[by][2 * pair + 1] = crc32c_power(8 * (by + 1) * CRC32C_VECTOR - 33);
        }
        crc32c_by[4][2 * pair] = pair < 3 ? crc32c_power(8 * 16 * (3 - pair) + 31) : 0;
        crc32c_by[4][2 * pair + 1] = pair < 3 ? crc32c_power(8 * 16 * (3 - pair) - 33) : 0;
    }
}
#endif

static uint32_t (*crc32c_add)(uint32_t, const uint8_t *, const uint8_t *) = crc32c_by_tables;

static void crc32c_begin(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
        crc32c_tables[0][byte] = crc;
    }
    for (int table = 1; table < 8; table++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = crc32c_tables[table - 1][byte];
            crc32c_tables[table][byte] = before >> 8 ^ crc32c_tables[0][before & 0xFF];
        }
#ifdef CRC32C_TARGET
    for (int index = 0; index < 4; index++)
        crc32c_moves[index] = crc32c_power(8 * (index < 2 ? CRC32C_LONG : CRC32C_SHORT) * (index % 2 + 1) - 33);
    if (crc32c_is_there()) crc32c_add = crc32c_by_instruction;
#endif
#ifdef CRC32C_WIDE
    crc32c_begin_wide();
    if (crc32c_is_there() && crc32c_is_wide()) crc32c_add = crc32c_by_vectors;
#endif
}

static inline uint32_t crc32c(const uint8_t *at, const uint8_t *end) {
    return ~crc32c_add(~0u, at, end);
}

/* What each way that this processor has comes to, tables first; returns how many there are. */
static inline int crc32c_each_way(const uint8_t *at, const uint8_t *end, uint32_t *crcs) {
    int count = 0;
    crcs[count++] = ~crc32c_by_tables(~0u, at, end);
#ifdef CRC32C_TARGET
    if (crc32c_is_there()) crcs[count++] = ~crc32c_by_instruction(~0u, at, end);
#endif
#ifdef CRC32C_WIDE
    if (crc32c_is_there() && crc32c_is_wide()) crcs[count++] = ~crc32c_by_vectors(~0u, at, end);
#endif
    return count;
}
#endif
