#include "plan.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_pages.h"
#include "elements.h"
#include "extents.h"
#include "fit.h"
#include "selftest.h"

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

/* Whether an output only says an extent of others. */
static bool is_count(const plan_index *index, uint32_t tensor) {
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
        if (!is_count(&plan->index, plan->index.outputs[i]))
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

static smartmem_status open_constants(Plan *plan) {
    memory_setting setting = plan_memory_setting(plan);
    cl_int code;
    cl_queue queue = cl.clCreateCommandQueue(plan->context, plan->device.handle, 0, &code);
    if (queue == NULL)
        return opencl_failed(code, "the device gives no queue");
    smartmem_status status = memory_open_constants(&plan->constants, &setting, queue);
    cl.clReleaseCommandQueue(queue);
    return status;
}

/* Gives a plan that fits its device programs and constants. */
static smartmem_status start(Plan *plan, const smartmem_plan_options *options) {
    cl_int code;
    memory_setting setting = plan_memory_setting(plan);
    TRY(memory_measure(&setting, &plan->sizes));
    plan->context = cl.clCreateContext(NULL, 1, &plan->device.handle, NULL, NULL, &code);
    if (plan->context == NULL)
        return opencl_failed(code, "the device cannot be opened");
    recorder_find(&plan->recorder, &plan->device, plan->context);
    build_order build = {&plan->file, &plan->index, &plan->device, plan->context, options};
    TRY(programs_open(&plan->programs, &build));
    TRY(self_test(plan, &build, &plan->self_test));
    return open_constants(plan);
}

static smartmem_status choose_and_start(Plan *plan, const smartmem_plan_options *options) {
    TRY(opencl_open(options->opencl_library));
    TRY(device_choose(&plan->index, options->device, text_of(plan->index.device), &plan->device));
    TRY(fit_check(plan));
    return start(plan, options);
}

/* The check of the constants, in a thread of its own: it is bound by memory, and the driver's work is not. */
typedef struct ConstantsCheck {
    const Plan *plan;
    pthread_t thread;
    bool in_thread;
    smartmem_status status;
    char error[ERROR_TEXT];
} ConstantsCheck;

static void *check_constants(void *given) {
    ConstantsCheck *check = given;
    check->status = index_check_constants(&check->plan->index, &check->plan->file);
    if (check->status != SMARTMEM_OK)
        snprintf(check->error, sizeof check->error, "%s", smartmem_last_error());
    return NULL;
}

static void begin_check(ConstantsCheck *check, const Plan *plan) {
    *check = (ConstantsCheck){.plan = plan};
    check->in_thread = pthread_create(&check->thread, NULL, check_constants, check) == 0;
    if (!check->in_thread)
        check_constants(check);
}

/* What the check found, which counts before `other`: a damaged plan explains what else failed. */
static smartmem_status end_check(ConstantsCheck *check, smartmem_status other) {
    if (check->in_thread)
        pthread_join(check->thread, NULL);
    return check->status == SMARTMEM_OK ? other : fail(check->status, "%s", check->error);
}

typedef smartmem_status (*opening)(Plan *plan, const smartmem_plan_options *options);

/* Opens a plan on its device, with the check of its constants beside. */
static smartmem_status open_checked(Plan *plan, const smartmem_plan_options *options, opening open) {
    ConstantsCheck check;
    smartmem_status status;
    if (options->trust_constants) {
        status = open(plan, options);
    } else {
        begin_check(&check, plan);
        status = end_check(&check, open(plan, options));
    }
    if (status != SMARTMEM_OK)
        return status;
    index_let_go(&plan->index, &plan->file);
    driver_pages_rest();
    if (!plan->device.host_memory)
        plan_file_rest(&plan->file); /* the constants are in the device's memory now */
    else if (!options->trust_constants)
        index_wake_constants(&plan->index, &plan->file);
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

smartmem_status plan_start(Plan *plan, const smartmem_plan_options *options) {
    return open_checked(plan, options, start);
}

smartmem_status plan_open(Plan **opened, plan_file *file, const smartmem_plan_options *options) {
    TRY(plan_read(opened, file));
    smartmem_status status = open_checked(*opened, options, choose_and_start);
    if (status != SMARTMEM_OK)
        plan_release(*opened);
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
