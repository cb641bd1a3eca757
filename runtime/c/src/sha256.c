#include "sha256.h"

#include "sha256_blocks.h"

#include <string.h>

const uint32_t SHA256_K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turned(uint32_t x, unsigned by) {
    return x >> by | x << (32 - by);
}

static uint32_t word_at(const uint8_t *from) {
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

/* One round, after which the caller takes the eight words to have moved on by one: none is copied. */
static inline void take_round(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e, uint32_t f, uint32_t g,
                              uint32_t *h, uint32_t word) {
    uint32_t first = *h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + word;
    *d += first;
    *h = first + (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
}

static void take_block(uint32_t state[8], const uint8_t *block) {
    uint32_t w[64], v[8];
    for (unsigned i = 0; i < 16; ++i)
        w[i] = word_at(block + 4 * i);
    for (unsigned i = 16; i < 64; ++i) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turned(a, 7) ^ turned(a, 18) ^ a >> 3) + w[i - 7] + (turned(b, 17) ^ turned(b, 19) ^ b >> 10);
    }
    memcpy(v, state, sizeof v);
    for (unsigned i = 0; i < 64; i += 8) {
        const uint32_t *k = SHA256_K + i, *x = w + i;
        take_round(v[0], v[1], v[2], v + 3, v[4], v[5], v[6], v + 7, k[0] + x[0]);
        take_round(v[7], v[0], v[1], v + 2, v[3], v[4], v[5], v + 6, k[1] + x[1]);
        take_round(v[6], v[7], v[0], v + 1, v[2], v[3], v[4], v + 5, k[2] + x[2]);
        take_round(v[5], v[6], v[7], v + 0, v[1], v[2], v[3], v + 4, k[3] + x[3]);
        take_round(v[4], v[5], v[6], v + 7, v[0], v[1], v[2], v + 3, k[4] + x[4]);
        take_round(v[3], v[4], v[5], v + 6, v[7], v[0], v[1], v + 2, k[5] + x[5]);
        take_round(v[2], v[3], v[4], v + 5, v[6], v[7], v[0], v + 1, k[6] + x[6]);
        take_round(v[1], v[2], v[3], v + 4, v[5], v[6], v[7], v + 0, k[7] + x[7]);
    }
    for (unsigned i = 0; i < 8; ++i)
        state[i] += v[i];
}

void sha256_take_plainly(uint32_t state[8], const uint8_t *blocks, size_t count) {
    for (size_t i = 0; i < count; ++i)
        take_block(state, blocks + SHA256_BLOCK * i);
}

static void take(uint32_t state[8], const uint8_t *blocks, size_t count) {
    if (!sha256_take_by_instructions(state, blocks, count))
        sha256_take_plainly(state, blocks, count);
}

void sha256_begin(sha256 *hash) {
    static const uint32_t START[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, START, sizeof START);
    hash->bytes = 0;
}

void sha256_add(sha256 *hash, const void *data, size_t bytes) {
    const uint8_t *from = data;
    while (bytes) {
        size_t at = hash->bytes % SHA256_BLOCK, room = SHA256_BLOCK - at, part = bytes < room ? bytes : room;
        if (!at && bytes >= SHA256_BLOCK) {
            part = bytes - bytes % SHA256_BLOCK;
            take(hash->state, from, part / SHA256_BLOCK);
        } else {
            memcpy(hash->block + at, from, part);
            if (part == room)
                take(hash->state, hash->block, 1);
        }
        hash->bytes += part;
        from += part;
        bytes -= part;
    }
}

void sha256_end(sha256 *hash, uint8_t digest[SHA256_BYTES]) {
    uint64_t bits = hash->bytes * 8;
    uint8_t length[8];
    for (unsigned i = 0; i < 8; ++i)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(hash, "\x80", 1);
    while (hash->bytes % SHA256_BLOCK != SHA256_BLOCK - sizeof length)
        sha256_add(hash, "", 1);
    sha256_add(hash, length, sizeof length);
    for (unsigned i = 0; i < SHA256_BYTES; ++i)
        digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}
