/* The launches of a run: one after the other, or recorded in the second run with the same extents and replayed. */

#include <stdio.h>

#include "session.h"

enum { AHEAD = 4 };

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

/* A launch with its sizes for the extents of the run. */
typedef struct sized_launch {
    cl_uint rank;
    const size_t *global;
    size_t local[3];
    bool has_local, empty;
} sized_launch;

static sized_launch launch_at(const Session *session, uint32_t number) {
    const plan_launch *launch = session->plan->index.launches + number;
    sized_launch one = {.rank = launch->global_size_count,
                        .global = session->global_size[number],
                        .has_local = launch->local_size_count > 0};
    for (cl_uint i = 0; i < one.rank; ++i) {
        one.empty = one.empty || !one.global[i];
        one.local[i] = i < launch->local_size_count ? launch->local_size[i] : 0;
    }
    return one;
}

static smartmem_status enqueue(Session *session, cl_queue queue, uint32_t number, cl_event *event) {
    sized_launch one = launch_at(session, number);
    if (one.empty)
        return SMARTMEM_OK;
    cl_int code = cl.clEnqueueNDRangeKernel(queue, session->kernels[number], one.rank, NULL, one.global,
                                            one.has_local ? one.local : NULL, 0, NULL, event);
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

static smartmem_status record_all(Session *session) {
    for (uint32_t i = 0; i < session->plan->index.launches_count; ++i) {
        sized_launch one = launch_at(session, i);
        if (one.empty)
            continue;
        cl_int code = recording_add(&session->recording, &(recorded_launch){session->kernels[i], one.rank, one.global,
                                                                            one.has_local ? one.local : NULL});
        if (code != CL_SUCCESS)
            return refused(session, i, code);
    }
    return recording_end(&session->recording);
}

static smartmem_status record(Session *session) {
    TRY(recording_begin(&session->recording, &session->plan->recorder, session->queue));
    smartmem_status status = record_all(session);
    if (status != SMARTMEM_OK)
        recording_close(&session->recording);
    return status;
}

smartmem_status session_launch(Session *session, bool watched) {
    /* a replay cannot be cancelled between two launches; and a single run is over sooner than its recording */
    if (watched || !session->may_record || !session->runs_so_sized)
        return enqueue_all(session, watched);
    if (session->recording.recorder == NULL)
        TRY(record(session));
    return session->recording.launches ? recording_replay(&session->recording) : SMARTMEM_OK;
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
