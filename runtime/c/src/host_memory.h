/* How much memory this process may still take: drivers for CPUs promise memory that is not there. */
#ifndef SMARTMEM_HOST_MEMORY_H
#define SMARTMEM_HOST_MEMORY_H

#include <stdint.h>

/* The bytes; UINT64_MAX where the system does not tell. */
uint64_t host_memory_available(void);

#endif
