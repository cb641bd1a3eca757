#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "extents.h"

memory_setting plan_memory_setting(const Plan *plan) {
    return (memory_setting){&plan->file, &plan->index, &plan->device, plan->context};
}

const plan_tensor *plan_input(const Plan *plan, uint32_t number) {
    return plan->index.tensors + plan->index.inputs[number];
}

const plan_tensor *plan_output(const Plan *plan, uint32_t number) {
    return plan->index.tensors + plan->index.outputs[plan->outputs[number]];
}

int64_t plan_input_named(const Plan *plan, const char *name) {
    for (uint32_t i = 0; i < plan->index.inputs_count; ++i)
        if (strcmp(text_of(plan_input(plan, i)->name), name) == 0)
            return i;
    return -1;
}

int64_t plan_output_named(const Plan *plan, const char *name) {
    for (uint32_t i = 0; i < plan->outputs_count; ++i)
        if (strcmp(text_of(plan_output(plan, i)->name), name) == 0)
            return i;
    return -1;
}

void plan_shown(const plan_tensor *tensor, const int64_t **extents, size_t *rank) {
    *extents = tensor->has_shown ? tensor->shown.extents : tensor->shape;
    *rank = tensor->has_shown ? tensor->shown.extents_count : tensor->shape_count;
}

/* Whether an output only tells what a run found: an extent of others, or whether loops have ended. */
static bool only_tells(const plan_index *index, uint32_t tensor) {
    if (index->has_endings && index->endings.number == tensor)
        return true;
    for (size_t i = 0; i < index->counts_count; ++i)
        if (index->counts[i].count == tensor)
            return true;
    return false;
}

static smartmem_status find_greatest(Plan *plan) {
    int64_t *dimensions = zeros(plan->index.dimensions_count, sizeof *dimensions);
    smartmem_status status = SMARTMEM_OK;
    for (size_t i = 0; dimensions != NULL && i < plan->index.dimensions_count; ++i)
        dimensions[i] = plan->index.dimensions[i].high;
    plan->greatest = zeros(plan->index.formulas_count, sizeof *plan->greatest);
    plan->outputs = zeros(plan->index.outputs_count, sizeof *plan->outputs);
    if (dimensions == NULL || plan->greatest == NULL || plan->outputs == NULL)
        status = fail(SMARTMEM_NO_MEMORY, "there is too little memory");
    else
        status = extents_evaluate(&plan->index, dimensions, plan->greatest);
    for (uint32_t i = 0; status == SMARTMEM_OK && i < plan->index.outputs_count; ++i)
        if (!only_tells(&plan->index, plan->index.outputs[i]))
            plan->outputs[plan->outputs_count++] = i;
    free(dimensions);
    return status;
}

/* At the greatest extents no input or output is larger than its memory. */
static smartmem_status check_borders(const Plan *plan) {
    const plan_index *index = &plan->index;
    for (size_t i = 0; i < index->inputs_count + index->outputs_count; ++i) {
        const plan_tensor *tensor =
            index->tensors + (i < index->inputs_count ? index->inputs[i] : index->outputs[i - index->inputs_count]);
        const int64_t *shown;
        size_t rank;
        uint64_t bytes, elements, own;
        plan_shown(tensor, &shown, &rank);
        if (!extents_product(tensor->shape, tensor->shape_count, plan->greatest, element_bytes(tensor->storage),
                             &bytes) ||
            !extents_product(tensor->shape, tensor->shape_count, plan->greatest, 1, &own) ||
            !extents_product(shown, rank, plan->greatest, 1, &elements) || bytes > tensor->bytes || own != elements)
            return fail(SMARTMEM_BAD_PLAN, "the plan is damaged: the tensor %s is larger than its memory",
                        text_of(tensor->name));
    }
    return SMARTMEM_OK;
}

static smartmem_status read_parts(Plan *plan) {
    TRY(index_open(&plan->index, &plan->file));
    TRY(find_greatest(plan));
    return check_borders(plan);
}

smartmem_status plan_read(Plan **read, plan_file *file) {
    Plan *made = zeros(1, sizeof *made);
    if (made == NULL) {
        plan_file_close(file);
        return fail(SMARTMEM_NO_MEMORY, "there is too little memory");
    }
    made->file = *file;
    atomic_init(&made->users, 1);
    smartmem_status status = read_parts(made);
    if (status == SMARTMEM_OK)
        *read = made;
    else
        plan_release(made);
    return status;
}

Plan *plan_shared(Plan *plan) {
    atomic_fetch_add(&plan->users, 1);
    return plan;
}

void plan_release(Plan *plan) {
    if (atomic_fetch_sub(&plan->users, 1) > 1)
        return;
    memory_close(&plan->constants);
    programs_close(&plan->programs);
    if (plan->context != NULL)
        cl.clReleaseContext(plan->context);
    index_close(&plan->index);
    plan_file_close(&plan->file);
    free(plan->greatest);
    free(plan->outputs);
    free(plan->self_test);
    free(plan);
}
