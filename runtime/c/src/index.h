/* The index of a plan's file: decoded, and every number in it checked against what it points to. */
#ifndef SMARTMEM_INDEX_H
#define SMARTMEM_INDEX_H

#include "file.h"
#include "plan.pb.h"
#include "status.h"

typedef smartmem_format_Plan plan_index;
typedef smartmem_format_Tensor plan_tensor;
typedef smartmem_format_Launch plan_launch;
typedef smartmem_format_Slot plan_slot;

/* Decodes and checks the index of a file that is whole; after an error there is nothing to close. */
smartmem_status index_open(plan_index *index, const plan_file *file);
void index_close(plan_index *index);
/* Frees the kernels' texts, and the memory of the file but for constants: nothing is built any more. */
void index_let_go(plan_index *index, const plan_file *file);
/* Has the constants in memory, for kernels that read them where they lie. */
void index_wake_constants(const plan_index *index, const plan_file *file);

/* Compares the checksums of the constants. */
smartmem_status index_check_constants(const plan_index *index, const plan_file *file);

/* Whether a kernel writes the tensor. */
bool index_written(const plan_index *index, uint32_t tensor);

#endif
