/* The bytes of a plan's file: docs/plan_format.md. */
#ifndef SMARTMEM_FILE_H
#define SMARTMEM_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

enum { PLAN_SLACK = 64, PLAN_DIGEST_BYTES = 32 };

/* Bytes that are mapped into memory, or that belong to the application. */
typedef struct plan_file {
    const uint8_t *data;
    size_t bytes;
    void *mapping; /* NULL where the bytes are the application's */
    size_t mapping_bytes;
    size_t index_offset;
    size_t index_bytes;
    uint8_t index_digest[PLAN_DIGEST_BYTES];
    size_t alignment; /* bytes at multiples of which kernels take every tensor to begin */
} plan_file;

/* Each maps or takes the bytes and checks header and index; after an error there is nothing to close. */
smartmem_status plan_file_open(plan_file *file, const char *path);
smartmem_status plan_file_open_descriptor(plan_file *file, int descriptor, uint64_t offset, uint64_t bytes);
smartmem_status plan_file_open_memory(plan_file *file, const void *data, size_t bytes);
void plan_file_close(plan_file *file);
/* Lets the system take back the memory of a mapped file, which is read again where it is needed. */
void plan_file_rest(const plan_file *file);
/* The same for the whole pages of a part, which lies in the file. */
void plan_file_rest_part(const plan_file *file, uint64_t offset, uint64_t bytes);
/* Has the system give the process these pages at once, which takes a fifth of the time of one after the other. */
void plan_file_wake_part(const plan_file *file, uint64_t offset, uint64_t bytes);

/* Whether bytes, and `PLAN_SLACK` more, lie in the file. */
bool plan_file_holds(const plan_file *file, uint64_t offset, uint64_t bytes);
/* The sum of bytes as little-endian 64-bit numbers, the last one filled up with zeros. */
uint64_t plan_file_sum(const plan_file *file, uint64_t offset, uint64_t bytes);

#endif
