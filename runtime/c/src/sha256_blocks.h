/* The inner loop of SHA-256, in C and by the instructions that many processors have for it. */
#ifndef SMARTMEM_SHA256_BLOCKS_H
#define SMARTMEM_SHA256_BLOCKS_H

#include <stdbool.h>

#include "sha256.h"

/* The standard's constants of the rounds. */
extern const uint32_t SHA256_K[64];

/* Takes whole blocks into the state. The second does nothing and says so where the processor has no instructions. */
void sha256_take_plainly(uint32_t state[8], const uint8_t *blocks, size_t count);
bool sha256_take_by_instructions(uint32_t state[8], const uint8_t *blocks, size_t count);

#endif
