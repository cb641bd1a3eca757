/* A plan on a device: its file, its programs, its constants. Sessions share it. */
#ifndef SMARTMEM_PLAN_H
#define SMARTMEM_PLAN_H

#include <stdatomic.h>

#include "memory.h"
#include "programs.h"
#include "recording.h"

typedef struct Plan {
    plan_file file;
    plan_index index;
    Device device;
    cl_context context;
    Recorder recorder;
    Programs programs;
    Memory constants;
    memory_sizes sizes;
    int64_t *greatest;       /* the value of each formula for the greatest extents */
    uint32_t *outputs;       /* places in the index's list, without those that only tell what a run found */
    uint32_t outputs_count;
    char *self_test;         /* what the self-test found, or NULL */
    atomic_llong runs;       /* how many there were: the number of a run that draws random numbers */
    atomic_uint users;       /* the handle and the sessions */
} Plan;

/* Reads a plan from a file, which it takes over in any case; `opening` puts it on a device. */
smartmem_status plan_read(Plan **read, plan_file *file);

Plan *plan_shared(Plan *plan);
void plan_release(Plan *plan);

/* What device memory of the plan is made for. */
memory_setting plan_memory_setting(const Plan *plan);

/* The place of an input or output of this name in the list, or -1. */
int64_t plan_input_named(const Plan *plan, const char *name);
int64_t plan_output_named(const Plan *plan, const char *name);

/* The tensor that is an input or output. */
const plan_tensor *plan_input(const Plan *plan, uint32_t number);
const plan_tensor *plan_output(const Plan *plan, uint32_t number);

/* The shape in which the model gives an output. */
void plan_shown(const plan_tensor *tensor, const int64_t **extents, size_t *rank);

#endif
