/* SHA-256 (FIPS 180-4). */
#ifndef SMARTMEM_SHA256_H
#define SMARTMEM_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_BLOCK = 64 };

typedef struct sha256 {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t block[SHA256_BLOCK];
} sha256;

void sha256_begin(sha256 *hash);
void sha256_add(sha256 *hash, const void *data, size_t bytes);
void sha256_end(sha256 *hash, uint8_t digest[SHA256_BYTES]);

#endif
