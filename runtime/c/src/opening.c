#include "opening.h"

#include <pthread.h>
#include <stdio.h>

#include "driver_pages.h"
#include "fit.h"
#include "selftest.h"

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

smartmem_status plan_fits(const Plan *plan) {
    memory_setting setting = plan_memory_setting(plan);
    return fit_check(&setting);
}

static smartmem_status choose_and_start(Plan *plan, const smartmem_plan_options *options) {
    TRY(opencl_open(options->opencl_library));
    TRY(device_choose(&plan->index, options->device, text_of(plan->index.device), &plan->device));
    TRY(plan_fits(plan));
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
