/* Probes: what the arguments of a kernel hold, and what must be in memory afterwards (docs/self_test.md). */
#ifndef SMARTMEM_PROBES_H
#define SMARTMEM_PROBES_H

#include "index.h"

typedef smartmem_format_Probe plan_probe;

/* The first element in memory that differs from what is expected. */
typedef struct Difference {
    uint64_t place; /* in the order of memory */
    double found, expected;
    uint64_t count, elements; /* how many differ, of how many */
} Difference;

/* Every number of the probes and spares points to what is there. */
smartmem_status probes_check(const plan_index *index, const plan_file *file);

/* What an argument of a probe's kernel holds before it runs, in memory that the caller frees. */
smartmem_status probe_contents(const plan_index *index, const plan_file *file, const plan_probe *probe,
                               uint32_t argument, void **contents);

/* Compares what an argument holds afterwards: `difference->count` is 0 where all is right. What is expected to be no
 * number is not compared, because OpenCL leaves open what becomes of one. */
smartmem_status probe_compare(const plan_index *index, const plan_file *file, const plan_probe *probe,
                              const smartmem_format_Answer *answer, const void *found, Difference *difference);

/* The tensor that an argument of a probe's kernel is. */
const plan_tensor *probe_tensor(const plan_index *index, const plan_probe *probe, uint32_t argument);

#endif
