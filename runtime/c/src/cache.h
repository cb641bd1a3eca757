/* Compiled programs in a folder, which the Python package may share: runtime/programs/program_cache.py there. */
#ifndef SMARTMEM_CACHE_H
#define SMARTMEM_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "device.h"

enum { CACHE_KEY_BYTES = 65 };

/* A name for a program: of all that its binary depends on.
 *
 * @param options each ends with a zero byte
 */
void cache_key(char key[CACHE_KEY_BYTES], const char *text, const char *options, size_t options_bytes,
               const Device *device);

/* The descriptor of the folder `programs` in that of the options; -1 where it cannot be had. */
int cache_open(const smartmem_plan_options *options);

/* A program's binary, which the caller frees; NULL where there is none or it is damaged. */
uint8_t *cache_read(int folder, const char *key, size_t *bytes);

/* Keeps a program's binary; where that is impossible nothing happens. */
void cache_write(int folder, const char *key, const uint8_t *binary, size_t bytes);

/* Gives PoCL, which keeps compiled kernels itself, the folder `pocl` in that of the options, unless the user has named
 * one. An error where the options' descriptor is that of no folder. */
smartmem_status cache_for_driver(const smartmem_plan_options *options);

#endif
