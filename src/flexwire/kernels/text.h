/* Text: whether bytes are UTF-8, and uuids as 22 letters of base64url. */
#ifndef FLEXWIRE_TEXT_H
#define FLEXWIRE_TEXT_H
#include <stdint.h>
#include <string.h>

/* The highest bit of each of eight bytes: none is set in ASCII. */
#define HIGH_BITS 0x8080808080808080ULL

/* Whether bytes are UTF-8 as Unicode defines it: shortest forms, no surrogates. */
static int is_utf8(const uint8_t *at, int64_t size) {
    const uint8_t *end = at + size;
    while (at < end) {
        uint64_t word;
        if (end - at >= 8 && (memcpy(&word, at, 8), !(word & HIGH_BITS))) {
            at += 8;
            continue;
        }
        uint8_t lead = *at;
        if (lead < 0x80) {
            at++;
            continue;
        }
        if (lead < 0xC2 || lead > 0xF4) return 0;
        int more = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
        if (more >= end - at) return 0;
        uint8_t lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
        uint8_t highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
        if (at[1] < lowest || at[1] > highest) return 0;
        for (int following = 2; following <= more; following++)
            if ((at[following] & 0xC0) != 0x80) return 0;
        at += more + 1;
    }
    return 1;
}

static const char uuid_letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Writes 22 letters for 16 bytes. */
static void write_uuid_text(uint8_t *target, const uint8_t *source) {
    uint32_t bits = 0;
    int count = 0;
    for (int byte = 0; byte < 16; byte++) {
        bits = bits << 8 | source[byte];
        for (count += 8; count >= 6; count -= 6) *target++ = uuid_letters[bits >> (count - 6) & 0x3F];
    }
    *target = uuid_letters[bits << 4 & 0x3F];
}

static inline int uuid_digit(uint8_t letter) {
    if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
    if (letter >= 'A' && letter <= 'Z') return letter - 'A';
    if (letter >= '0' && letter <= '9') return letter - '0' + 52;
    return letter == '-' ? 62 : letter == '_' ? 63 : -1;
}

/* Reads 22 letters as 16 bytes; 0 where they are not just what write_uuid_text writes. */
static int read_uuid_text(uint8_t *target, const uint8_t *source) {
    uint32_t bits = 0;
    int count = 0;
    for (int letter = 0; letter < 22; letter++) {
        int digit = uuid_digit(source[letter]);
        if (digit < 0) return 0;
        bits = bits << 6 | (uint32_t)digit;
        if ((count += 6) >= 8) *target++ = (uint8_t)(bits >> (count -= 8));
    }
    return !(bits & 0xF);
}
#endif
