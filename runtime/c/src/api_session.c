/* The public functions about sessions: each checks its arguments, and takes the session for the calling thread. */

#include <stddef.h>
#include <string.h>

#include "arguments.h"
#include "elements.h"
#include "extents.h"
#include "handles.h"
#include "session.h"

smartmem_status smartmem_session_open(smartmem_plan handle, const smartmem_session_options *options,
                                      smartmem_session *opened) {
    smartmem_session_options known = SMARTMEM_SESSION_OPTIONS;
    Session *made = NULL;
    if (opened == NULL)
        return null_argument("session");
    opened->id = 0;
    if (options != NULL) {
        /* programs that know less of the options leave the rest as it is */
        TRY(check_struct(options->struct_size, offsetof(smartmem_session_options, record)));
        memcpy(&known, options, options->struct_size < sizeof known ? options->struct_size : sizeof known);
    }
    Plan *plan = handle_use(HANDLE_PLAN, handle.id);
    if (plan == NULL)
        return bad_handle("plan");
    smartmem_status status = session_open(&made, plan, &known);
    handle_done(handle.id);
    TRY(status);
    made->id = opened->id = handle_new(HANDLE_SESSION, made);
    if (opened->id)
        return SMARTMEM_OK;
    session_close(made);
    return fail(SMARTMEM_NO_MEMORY, "there are too many handles");
}

/* Whether the calling thread is that of the session, which then runs a callback. */
static bool is_worker(Session *session) {
    pthread_mutex_lock(&session->lock);
    bool own = session->has_worker && pthread_equal(session->worker, pthread_self());
    pthread_mutex_unlock(&session->lock);
    return own;
}

smartmem_status smartmem_session_close(smartmem_session handle) {
    Session *session = handle_use(HANDLE_SESSION, handle.id);
    if (session == NULL)
        return bad_handle("session");
    bool own = is_worker(session);
    if (!own)
        atomic_store(&session->cancelled, true);
    handle_done(handle.id);
    if (own)
        return fail(SMARTMEM_BUSY, "a callback cannot close its own session");
    session = handle_take(HANDLE_SESSION, handle.id);
    if (session == NULL)
        return bad_handle("session");
    session_close(session);
    return SMARTMEM_OK;
}

/* The session of a handle, taken for the calling thread; to be given back with `leave`. */
static smartmem_status enter(smartmem_session handle, Session **entered) {
    Session *session = *entered = handle_use(HANDLE_SESSION, handle.id);
    if (session == NULL)
        return bad_handle("session");
    smartmem_status status = session_take(session);
    if (status != SMARTMEM_OK)
        handle_done(handle.id);
    return status;
}

static smartmem_status leave(smartmem_session handle, Session *session, smartmem_status status) {
    session_give_back(session);
    handle_done(handle.id);
    return status;
}

static smartmem_status check_extent(const Plan *plan, const plan_tensor *tensor, size_t axis, int64_t given) {
    int64_t extent = tensor->shape[axis];
    int32_t dimension = extent_dimension(&plan->index, extent);
    if (given < 0 || (extent >= 0 && given != extent))
        return fail(SMARTMEM_BAD_SIZE, "the input %s has extent %lld in axis %zu, not %lld", text_of(tensor->name),
                    (long long)extent, axis, (long long)given);
    if (dimension < 0)
        return SMARTMEM_OK;
    const smartmem_format_Dimension *one = plan->index.dimensions + dimension;
    if (given < one->low || given > one->high)
        return fail(SMARTMEM_BAD_SIZE, "the dimension %s of the input %s is %lld; the plan is made for %u to %u",
                    text_of(one->name), text_of(tensor->name), (long long)given, (unsigned)one->low,
                    (unsigned)one->high);
    return SMARTMEM_OK;
}

static smartmem_status check_input(const Plan *plan, const plan_tensor *tensor, size_t bytes, const int64_t *shape,
                                   size_t rank) {
    uint64_t wanted = UINT64_MAX; /* of a product that overflows */
    if (rank != tensor->shape_count)
        return fail(SMARTMEM_BAD_SIZE, "the input %s has %zu axes, not %zu", text_of(tensor->name),
                    (size_t)tensor->shape_count, rank);
    for (size_t axis = 0; axis < rank; ++axis)
        TRY(check_extent(plan, tensor, axis, shape[axis]));
    if (!extents_product(shape, rank, NULL, element_bytes(tensor->element), &wanted) || wanted != bytes)
        return fail(SMARTMEM_BAD_SIZE, "the input %s has %llu bytes with this shape, not %zu", text_of(tensor->name),
                    (unsigned long long)wanted, bytes);
    return SMARTMEM_OK;
}

static smartmem_status set_input(Session *session, const char *name, const void *data, size_t bytes,
                                 const int64_t *shape, size_t rank) {
    const Plan *plan = session->plan;
    int64_t number = plan_input_named(plan, name);
    if (number < 0)
        return fail(SMARTMEM_BAD_NAME, "there is no input %s", name);
    const plan_tensor *tensor = plan_input(plan, (uint32_t)number);
    if (shape == NULL) {
        for (size_t axis = 0; axis < tensor->shape_count; ++axis)
            if (tensor->shape[axis] < 0)
                return fail(SMARTMEM_BAD_ARGUMENT, "the input %s has open dimensions: give its shape", name);
        shape = tensor->shape;
        rank = tensor->shape_count;
    }
    TRY(check_input(plan, tensor, bytes, shape, rank));
    if (data == NULL && bytes)
        return null_argument("data");
    session_input *input = session->inputs + number;
    if (rank)
        memcpy(input->shape, shape, rank * sizeof *shape);
    input->data = data;
    input->set = true;
    return SMARTMEM_OK;
}

smartmem_status smartmem_set_input(smartmem_session handle, const char *name, const void *data, size_t bytes,
                                   const int64_t *shape, size_t rank) {
    Session *session;
    if (name == NULL)
        return null_argument("name");
    TRY(enter(handle, &session));
    return leave(handle, session, set_input(session, name, data, bytes, shape, rank));
}

static smartmem_status set_output(Session *session, const char *name, void *data, size_t bytes) {
    int64_t number = plan_output_named(session->plan, name);
    if (number < 0)
        return fail(SMARTMEM_BAD_NAME, "there is no output %s", name);
    const plan_tensor *tensor = plan_output(session->plan, (uint32_t)number);
    uint64_t needed;
    extents_product(tensor->shape, tensor->shape_count, session->plan->greatest, element_bytes(tensor->element),
                    &needed);
    if (data != NULL && bytes < needed)
        return fail(SMARTMEM_BAD_SIZE, "the output %s needs %llu bytes, not %zu", name, (unsigned long long)needed,
                    bytes);
    session->outputs[session->plan->outputs[number]].application = data;
    session->has_result = false;
    return SMARTMEM_OK;
}

smartmem_status smartmem_set_output(smartmem_session handle, const char *name, void *data, size_t bytes) {
    Session *session;
    if (name == NULL)
        return null_argument("name");
    TRY(enter(handle, &session));
    return leave(handle, session, set_output(session, name, data, bytes));
}

smartmem_status smartmem_run(smartmem_session handle) {
    Session *session;
    TRY(enter(handle, &session));
    return leave(handle, session, session_run(session, false));
}

smartmem_status smartmem_run_async(smartmem_session handle, smartmem_callback callback, void *user) {
    Session *session = handle_use(HANDLE_SESSION, handle.id);
    if (session == NULL)
        return bad_handle("session");
    smartmem_status status = session_start(session, callback, user);
    handle_done(handle.id);
    return status;
}

smartmem_status smartmem_wait(smartmem_session handle) {
    Session *session = handle_use(HANDLE_SESSION, handle.id);
    if (session == NULL)
        return bad_handle("session");
    smartmem_status status = session_wait(session);
    handle_done(handle.id);
    return status;
}

smartmem_status smartmem_cancel(smartmem_session handle) {
    Session *session = handle_use(HANDLE_SESSION, handle.id);
    if (session == NULL)
        return bad_handle("session");
    atomic_store(&session->cancelled, true);
    handle_done(handle.id);
    return SMARTMEM_OK;
}

static smartmem_status get_output(Session *session, const char *name, smartmem_output *output) {
    int64_t number = plan_output_named(session->plan, name);
    if (number < 0)
        return fail(SMARTMEM_BAD_NAME, "there is no output %s", name);
    if (!session->has_result)
        return fail(SMARTMEM_NO_RESULT, "no run has ended well since the outputs were set");
    const plan_tensor *tensor = plan_output(session->plan, (uint32_t)number);
    const session_output *found = session->outputs + session->plan->outputs[number];
    const int64_t *extents;
    size_t rank;
    plan_shown(tensor, &extents, &rank);
    *output = (smartmem_output){.data = found->application != NULL ? found->application : found->result,
                                .bytes = found->bytes,
                                .element = (smartmem_element)tensor->element,
                                .rank = (uint32_t)rank};
    memcpy(output->shape, found->shape, sizeof output->shape);
    return SMARTMEM_OK;
}

smartmem_status smartmem_get_output(smartmem_session handle, const char *name, smartmem_output *output) {
    Session *session;
    if (name == NULL || output == NULL)
        return null_argument(name == NULL ? "name" : "output");
    TRY(enter(handle, &session));
    return leave(handle, session, get_output(session, name, output));
}

smartmem_status smartmem_profile(smartmem_session handle, smartmem_launch_time *times, size_t capacity, size_t *count) {
    Session *session;
    if (count == NULL || (times == NULL && capacity))
        return null_argument(count == NULL ? "count" : "times");
    TRY(enter(handle, &session));
    return leave(handle, session, session_profile(session, times, capacity, count));
}
