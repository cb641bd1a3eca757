/* The device memory of a plan: constants, which all sessions share, and what each session has of its own. */
#ifndef SMARTMEM_MEMORY_H
#define SMARTMEM_MEMORY_H

#include "pieces.h"

/* Memory objects by tensor. `owned` says which of them are released with the rest; others are borrowed. */
typedef struct Memory {
    cl_memory *tensors;
    bool *owned;
    size_t count;
    cl_memory *pieces; /* that intermediates share */
    size_t pieces_count;
} Memory;

/* Sizes in bytes. */
typedef struct memory_sizes {
    uint64_t constants, session, intermediates;
} memory_sizes;

smartmem_status memory_measure(const memory_setting *setting, memory_sizes *sizes);

/* Checks that the device can have the memory of a plan: images, limits, where parts of buffers begin. */
smartmem_status memory_check(const memory_setting *setting);

/* The constants that no kernel writes, filled; mapped ones are used where they lie. */
smartmem_status memory_open_constants(Memory *memory, const memory_setting *setting, cl_queue queue);

/* All other tensors, and the constants of `constants`.
 *
 * @param block memory of the application for intermediates in buffers, or NULL
 */
smartmem_status memory_open_session(Memory *memory, const memory_setting *setting, const Memory *constants,
                                    cl_queue queue, void *block, size_t block_bytes);

/* Memory of its own for a tensor, with contents in the order of memory, which are copied. */
smartmem_status memory_open_filled(const memory_setting *setting, const plan_tensor *tensor, const void *contents,
                                   cl_queue queue, cl_memory *made);

/* What a tensor's memory holds, once all that is in the queue has run. */
smartmem_status memory_read(const plan_tensor *tensor, cl_memory memory, cl_queue queue, void *contents);

void memory_close(Memory *memory);

#endif
