/* From the device to the application's outputs: copies, conversions, and cuts to extents that the run has computed. */

#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "extents.h"
#include "session.h"

static const plan_tensor *tensor_of(const Session *session, uint32_t number) {
    return session->plan->index.tensors + session->plan->index.outputs[number];
}

/* Where the elements of an output come to lie as the model has them. */
static void *result_of(session_output *output) {
    return output->application != NULL ? output->application : output->result;
}

static smartmem_status make_room(session_output *output, const plan_tensor *tensor) {
    /* at the greatest extents, once */
    size_t elements = (size_t)(tensor->bytes / element_bytes(tensor->storage));
    if (output->application == NULL && output->result == NULL)
        output->result = malloc(elements * element_bytes(tensor->element) + 1);
    if (!elements_same(tensor->storage, tensor->element) && output->raw == NULL)
        output->raw = malloc((size_t)tensor->bytes + 1);
    bool good = result_of(output) != NULL && (elements_same(tensor->storage, tensor->element) || output->raw != NULL);
    return good ? SMARTMEM_OK : fail(SMARTMEM_NO_MEMORY, "there is too little memory for the outputs");
}

static smartmem_status read_one(Session *session, uint32_t number) {
    const plan_tensor *tensor = tensor_of(session, number);
    session_output *output = session->outputs + number;
    TRY(make_room(output, tensor));
    void *target = elements_same(tensor->storage, tensor->element) ? result_of(output) : output->raw;
    size_t bytes = (size_t)(output->elements * element_bytes(tensor->storage));
    if (!bytes)
        return SMARTMEM_OK;
    cl_memory memory = session->memory.tensors[session->plan->index.outputs[number]];
    cl_int code = cl.clEnqueueReadBuffer(session->queue, memory, 0, 0, bytes, target, 0, NULL, NULL);
    return code == CL_SUCCESS ? SMARTMEM_OK : opencl_failed(code, "an output cannot be copied from the device");
}

static void show(Session *session, uint32_t number) {
    const plan_tensor *tensor = tensor_of(session, number);
    session_output *output = session->outputs + number;
    const int64_t *extents;
    size_t rank;
    plan_shown(tensor, &extents, &rank);
    for (size_t i = 0; i < rank; ++i)
        output->shape[i] = extent_at(extents[i], session->formulas);
    output->bytes = output->elements * element_bytes(tensor->element);
    if (!elements_same(tensor->storage, tensor->element))
        elements_copy(result_of(output), tensor->element, output->raw, tensor->storage, (size_t)output->elements);
}

/* The place of a tensor in the list of outputs; the index has been checked to have it there. */
static uint32_t output_of(const plan_index *index, uint32_t tensor) {
    uint32_t place = 0;
    while (index->outputs[place] != tensor)
        ++place;
    return place;
}

static int64_t count_of(Session *session, const smartmem_format_Count *count) {
    uint32_t place = output_of(&session->plan->index, count->count);
    const void *data = result_of(session->outputs + place);
    int64_t wide;
    int32_t narrow;
    if (tensor_of(session, place)->element == smartmem_format_Element_INT64) {
        memcpy(&wide, data, sizeof wide);
        return wide;
    }
    memcpy(&narrow, data, sizeof narrow);
    return narrow;
}

/* Leaves the first elements along an axis: blocks move together. */
static void cut(session_output *output, size_t rank, size_t axis, int64_t extent, size_t element) {
    size_t inner = element, outer = 1;
    for (size_t i = axis + 1; i < rank; ++i)
        inner *= (size_t)output->shape[i];
    for (size_t i = 0; i < axis; ++i)
        outer *= (size_t)output->shape[i];
    size_t before = inner * (size_t)output->shape[axis], after = inner * (size_t)extent;
    uint8_t *data = result_of(output);
    for (size_t i = 1; i < outer && before != after; ++i)
        memmove(data + i * after, data + i * before, after);
    output->shape[axis] = extent;
    output->bytes = (uint64_t)outer * after;
}

static smartmem_status cut_by(Session *session, const smartmem_format_Count *count) {
    uint32_t place = output_of(&session->plan->index, count->output);
    const plan_tensor *tensor = tensor_of(session, place);
    session_output *output = session->outputs + place;
    const int64_t *extents;
    size_t rank;
    int64_t extent = count_of(session, count);
    plan_shown(tensor, &extents, &rank);
    if (extent < 0 || extent > output->shape[count->axis])
        return fail(SMARTMEM_DEVICE_ERROR, "the output %s has room for %lld, and the run has counted %lld",
                    text_of(tensor->name), (long long)output->shape[count->axis], (long long)extent);
    cut(output, rank, count->axis, extent, element_bytes(tensor->element));
    return SMARTMEM_OK;
}

/* Loops whose ends depend on data are unrolled for some steps: more would have given other results. */
static smartmem_status ask_whether_ended(Session *session) {
    const plan_index *index = &session->plan->index;
    int64_t number = 0;
    if (!index->has_endings)
        return SMARTMEM_OK;
    memcpy(&number, result_of(session->outputs + output_of(index, index->endings.number)), sizeof number);
    if (!number)
        return SMARTMEM_OK;
    if (number < 0 || number > (int64_t)index->endings.loops_count)
        return fail(SMARTMEM_UNENDED_LOOP, "loop %lld has not ended", (long long)number);
    const smartmem_format_Loop *loop = index->endings.loops + number - 1;
    return fail(SMARTMEM_UNENDED_LOOP,
                "the Loop '%s' has not ended after %u steps, for which it was unrolled: its end depends on data. "
                "Optimize the model again with limits=Limits(steps=N) or --limit steps=N",
                text_of(loop->name), (unsigned)loop->steps);
}

/* Work-groups that wait for each other give up after a while, and the launch notes for which step. */
static smartmem_status ask_whether_given_up(Session *session, uint32_t number) {
    const plan_launch *launch = session->plan->index.launches + number;
    if (!launch->has_waiting)
        return SMARTMEM_OK;
    cl_memory memory = session->memory.tensors[launch->arguments[launch->waiting.noted].tensor];
    cl_int code = cl.clEnqueueReadBuffer(session->queue, memory, 0, launch->waiting.element * sizeof(int32_t),
                                         sizeof(int32_t), session->given_up + number, 0, NULL, NULL);
    return code == CL_SUCCESS ? SMARTMEM_OK : opencl_failed(code, "a launch's note cannot be copied from the device");
}

static smartmem_status complain(Session *session, uint32_t number) {
    const plan_launch *launch = session->plan->index.launches + number;
    int32_t step = launch->has_waiting ? session->given_up[number] : 0;
    if (!step)
        return SMARTMEM_OK;
    bool known = step > 0 && (uint32_t)step <= launch->waiting.steps_count;
    return fail(SMARTMEM_DEVICE_ERROR, "the launch %s gave up: its kernel %s waited for others for too long",
                text_of(launch->name), known ? text_of(launch->waiting.steps[step - 1]) : "?");
}

smartmem_status session_download(Session *session) {
    const plan_index *index = &session->plan->index;
    smartmem_status status = SMARTMEM_OK;
    for (uint32_t i = 0; status == SMARTMEM_OK && i < index->outputs_count; ++i)
        status = read_one(session, i);
    for (uint32_t i = 0; status == SMARTMEM_OK && i < index->launches_count; ++i)
        status = ask_whether_given_up(session, i);
    cl_int code = cl.clFinish(session->queue);
    TRY(status);
    if (code != CL_SUCCESS)
        return opencl_failed(code, "the device did not finish the run");
    for (uint32_t i = 0; i < index->launches_count; ++i)
        TRY(complain(session, i));
    for (uint32_t i = 0; i < index->outputs_count; ++i)
        show(session, i);
    TRY(ask_whether_ended(session));
    for (size_t i = 0; i < index->counts_count; ++i)
        TRY(cut_by(session, index->counts + i));
    return SMARTMEM_OK;
}
