#include "session.h"

#include <stdio.h>
#include <stdlib.h>

#include "extents.h"

enum { AHEAD = 4 };

static smartmem_status no_memory(void) {
    return fail(SMARTMEM_NO_MEMORY, "there is too little memory");
}

static smartmem_status set_argument(const plan_launch *launch, cl_kernel kernel, cl_uint place, size_t bytes,
                                    const void *value) {
    cl_int code = cl.clSetKernelArg(kernel, place, bytes, value);
    if (code == CL_SUCCESS)
        return SMARTMEM_OK;
    return fail(SMARTMEM_BAD_PROGRAM, "the kernel %s does not take its argument %u (OpenCL error %d)",
                text_of(launch->name), (unsigned)place, (int)code);
}

static smartmem_status make_kernel(Session *session, uint32_t number) {
    const Plan *plan = session->plan;
    const plan_launch *launch = plan->index.launches + number;
    int32_t lowest = 1; /* until the inputs tell */
    TRY(programs_kernel(&plan->programs, &plan->index, number, session->kernels + number));
    for (cl_uint i = 0; i < launch->arguments_count; ++i)
        TRY(set_argument(launch, session->kernels[number], i, sizeof(cl_memory),
                         session->memory.tensors + launch->arguments[i].tensor));
    for (cl_uint i = 0; i < launch->dimensions_count; ++i)
        TRY(set_argument(launch, session->kernels[number], launch->arguments_count + i, sizeof lowest, &lowest));
    return SMARTMEM_OK;
}

static smartmem_status open_parts(Session *session, const smartmem_session_options *options) {
    const plan_index *index = &session->plan->index;
    memory_setting setting = plan_memory_setting(session->plan);
    cl_int code;
    session->kernels = zeros(index->launches_count, sizeof *session->kernels);
    session->global_size = zeros(index->launches_count, sizeof *session->global_size);
    session->dimensions = zeros(index->dimensions_count, sizeof *session->dimensions);
    session->formulas = zeros(index->formulas_count, sizeof *session->formulas);
    session->inputs = zeros(index->inputs_count, sizeof *session->inputs);
    session->outputs = zeros(index->outputs_count, sizeof *session->outputs);
    if (!session->kernels || !session->global_size || !session->dimensions || !session->formulas || !session->inputs ||
        !session->outputs)
        return no_memory();
    session->queue = cl.clCreateCommandQueue(session->plan->context, session->plan->device.handle, 0, &code);
    if (session->queue == NULL)
        return opencl_failed(code, "the device gives no queue");
    TRY(memory_open_session(&session->memory, &setting, &session->plan->constants, session->queue, options->memory,
                            options->memory_bytes));
    for (uint32_t i = 0; i < index->launches_count; ++i)
        TRY(make_kernel(session, i));
    return SMARTMEM_OK;
}

smartmem_status session_open(Session **opened, Plan *plan, const smartmem_session_options *options) {
    Session *made = zeros(1, sizeof *made);
    if (made == NULL)
        return no_memory();
    made->plan = plan_shared(plan);
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->changed, NULL);
    smartmem_status status = open_parts(made, options);
    if (status == SMARTMEM_OK)
        *opened = made;
    else
        session_close(made);
    return status;
}

void session_close(Session *session) {
    const plan_index *index = &session->plan->index;
    session_end_worker(session);
    if (session->queue != NULL)
        cl.clFinish(session->queue);
    for (size_t i = 0; session->kernels != NULL && i < index->launches_count; ++i)
        if (session->kernels[i] != NULL)
            cl.clReleaseKernel(session->kernels[i]);
    for (size_t i = 0; session->outputs != NULL && i < index->outputs_count; ++i) {
        free(session->outputs[i].result);
        free(session->outputs[i].raw);
    }
    memory_close(&session->memory);
    if (session->queue != NULL)
        cl.clReleaseCommandQueue(session->queue);
    free(session->kernels);
    free(session->global_size);
    free(session->dimensions);
    free(session->formulas);
    free(session->inputs);
    free(session->outputs);
    pthread_mutex_destroy(&session->lock);
    pthread_cond_destroy(&session->changed);
    plan_release(session->plan);
    free(session);
}

smartmem_status session_take(Session *session) {
    pthread_mutex_lock(&session->lock);
    bool mine = session->state == IDLE;
    if (mine)
        session->state = RUNS;
    pthread_mutex_unlock(&session->lock);
    return mine ? SMARTMEM_OK : fail(SMARTMEM_BUSY, "the session runs");
}

void session_give_back(Session *session) {
    pthread_mutex_lock(&session->lock);
    session->state = IDLE;
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
}

static smartmem_status refused(const Session *session, uint32_t number, cl_int code) {
    const plan_launch *launch = session->plan->index.launches + number;
    const size_t *size = session->global_size[number];
    size_t rank = launch->global_size_count;
    char text[256];
    snprintf(text, sizeof text, "%s refuses the kernel %s with global size %zu x %zu x %zu",
             session->plan->device.names.name, text_of(launch->name), size[0], rank > 1 ? size[1] : 1,
             rank > 2 ? size[2] : 1);
    return opencl_failed(code, text);
}

static smartmem_status enqueue(Session *session, cl_queue queue, uint32_t number, cl_event *event) {
    const plan_launch *launch = session->plan->index.launches + number;
    const size_t *global = session->global_size[number];
    size_t local[3] = {0};
    cl_uint rank = launch->global_size_count;
    for (cl_uint i = 0; i < rank; ++i) {
        if (!global[i])
            return SMARTMEM_OK;
        local[i] = i < launch->local_size_count ? launch->local_size[i] : 0;
    }
    cl_int code = cl.clEnqueueNDRangeKernel(queue, session->kernels[number], rank, NULL, global,
                                            launch->local_size_count ? local : NULL, 0, NULL, event);
    return code == CL_SUCCESS ? SMARTMEM_OK : refused(session, number, code);
}

/* Waits for a launch, so that a run that is cancelled has few of them in the queue. */
static void wait_for(cl_event *event) {
    if (*event == NULL)
        return;
    cl.clWaitForEvents(1, event);
    cl.clReleaseEvent(*event);
    *event = NULL;
}

static smartmem_status enqueue_all(Session *session, bool watched) {
    cl_event events[AHEAD] = {NULL};
    smartmem_status status = SMARTMEM_OK;
    for (uint32_t i = 0; status == SMARTMEM_OK && i < session->plan->index.launches_count; ++i) {
        cl_event *event = watched ? events + i % AHEAD : NULL;
        if (watched && atomic_load(&session->cancelled)) {
            status = fail(SMARTMEM_CANCELLED, "the run was cancelled before its launch %u", (unsigned)i);
            break;
        }
        if (event != NULL)
            wait_for(event);
        status = enqueue(session, session->queue, i, event);
        if (event != NULL)
            cl.clFlush(session->queue);
    }
    for (size_t i = 0; i < AHEAD; ++i)
        wait_for(events + i);
    return status;
}

smartmem_status session_run(Session *session, bool watched) {
    session->has_result = false;
    TRY(session_take_inputs(session));
    smartmem_status status = session_upload(session);
    if (status == SMARTMEM_OK)
        status = enqueue_all(session, watched);
    if (status == SMARTMEM_OK)
        status = session_download(session);
    else
        cl.clFinish(session->queue); /* the application may free its inputs */
    session->has_result = status == SMARTMEM_OK;
    return status;
}

static double milliseconds(cl_event event) {
    uint64_t start = 0, end = 0;
    cl.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL);
    cl.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
    return (double)(end - start) * 1e-6;
}

static smartmem_status profile_on(Session *session, cl_queue queue, smartmem_launch_time *times, size_t capacity) {
    uint32_t count = session->plan->index.launches_count;
    for (uint32_t i = 0; i < count; ++i) {
        cl_event event = NULL;
        TRY(enqueue(session, queue, i, &event));
        cl.clFinish(queue);
        if (i < capacity)
            times[i] = (smartmem_launch_time){text_of(session->plan->index.launches[i].name),
                                              event != NULL ? milliseconds(event) : 0};
        if (event != NULL)
            cl.clReleaseEvent(event);
    }
    return SMARTMEM_OK;
}

smartmem_status session_profile(Session *session, smartmem_launch_time *times, size_t capacity, size_t *count) {
    cl_int code;
    TRY(session_run(session, false));
    cl_queue queue = cl.clCreateCommandQueue(session->plan->context, session->plan->device.handle,
                                             CL_QUEUE_PROFILING_ENABLE, &code);
    if (queue == NULL)
        return opencl_failed(code, "the device gives no queue that measures");
    smartmem_status status = profile_on(session, queue, times, capacity);
    cl.clReleaseCommandQueue(queue);
    *count = session->plan->index.launches_count;
    return status;
}
