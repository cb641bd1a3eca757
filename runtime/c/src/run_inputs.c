/* From the application's inputs to the device: extents of open dimensions, sizes of launches, copies. */

#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "extents.h"
#include "session.h"

/* An int64 scalar of plans that draw random numbers: by default how many runs there were before. */
static const char RUN_NUMBER[] = "random:run";

static bool is_run_number(const plan_tensor *tensor) {
    return strcmp(text_of(tensor->name), RUN_NUMBER) == 0 && tensor->shape_count == 0 &&
           tensor->element == smartmem_format_Element_INT64 && tensor->bytes == sizeof(int64_t);
}

/* Takes the open dimensions that an input has. */
static smartmem_status take_dimensions(const Session *session, uint32_t number, int64_t *dimensions) {
    const plan_index *index = &session->plan->index;
    const plan_tensor *tensor = plan_input(session->plan, number);
    for (size_t axis = 0; axis < tensor->shape_count; ++axis) {
        int32_t dimension = extent_dimension(index, tensor->shape[axis]);
        int64_t given = session->inputs[number].shape[axis];
        if (dimension < 0)
            continue;
        if (dimensions[dimension] != given && dimensions[dimension] >= 0)
            return fail(SMARTMEM_BAD_SIZE, "the dimension %s is %lld in the input %s and %lld in another",
                        text_of(index->dimensions[dimension].name), (long long)given, text_of(tensor->name),
                        (long long)dimensions[dimension]);
        dimensions[dimension] = given;
    }
    return SMARTMEM_OK;
}

static smartmem_status find_dimensions(Session *session, int64_t *dimensions) {
    const plan_index *index = &session->plan->index;
    for (size_t i = 0; i < index->dimensions_count; ++i)
        dimensions[i] = -1;
    for (uint32_t i = 0; i < index->inputs_count; ++i) {
        const plan_tensor *tensor = plan_input(session->plan, i);
        if (session->inputs[i].set)
            TRY(take_dimensions(session, i, dimensions));
        else if (!is_run_number(tensor))
            return fail(SMARTMEM_NO_INPUT, "the input %s was not set", text_of(tensor->name));
    }
    for (size_t i = 0; i < index->dimensions_count; ++i)
        if (dimensions[i] < 0)
            return fail(SMARTMEM_BAD_PLAN, "no input has the dimension %s", text_of(index->dimensions[i].name));
    return SMARTMEM_OK;
}

/* Inputs have the extents that formulas of other dimensions give. */
static smartmem_status check_shapes(const Session *session) {
    for (uint32_t i = 0; i < session->plan->index.inputs_count; ++i) {
        const plan_tensor *tensor = plan_input(session->plan, i);
        for (size_t axis = 0; session->inputs[i].set && axis < tensor->shape_count; ++axis) {
            int64_t wanted = extent_at(tensor->shape[axis], session->formulas);
            if (session->inputs[i].shape[axis] != wanted)
                return fail(SMARTMEM_BAD_SIZE, "the input %s has extent %lld in axis %zu; with these dimensions it is %lld",
                            text_of(tensor->name), (long long)session->inputs[i].shape[axis], axis, (long long)wanted);
        }
    }
    return SMARTMEM_OK;
}

static smartmem_status size_launch(Session *session, uint32_t number) {
    const plan_launch *launch = session->plan->index.launches + number;
    for (size_t i = 0; i < launch->global_size_count; ++i) {
        int64_t size = extent_at(launch->global_size[i], session->formulas);
        if (size < 0)
            return fail(SMARTMEM_BAD_PLAN, "the launch %s has no size for these extents", text_of(launch->name));
        session->global_size[number][i] = (size_t)size;
    }
    for (cl_uint i = 0; i < launch->dimensions_count; ++i) {
        int32_t value = (int32_t)session->dimensions[launch->dimensions[i]];
        cl_int code = cl.clSetKernelArg(session->kernels[number], launch->arguments_count + i, sizeof value, &value);
        if (code != CL_SUCCESS)
            return opencl_failed(code, "a kernel does not take the extent of a dimension");
    }
    return SMARTMEM_OK;
}

static smartmem_status size_output(Session *session, uint32_t number) {
    const plan_tensor *tensor = session->plan->index.tensors + session->plan->index.outputs[number];
    session_output *output = session->outputs + number;
    const int64_t *extents;
    size_t rank;
    uint64_t bytes;
    plan_shown(tensor, &extents, &rank);
    if (!extents_product(tensor->shape, tensor->shape_count, session->formulas, 1, &output->elements) ||
        !extents_product(extents, rank, session->formulas, element_bytes(tensor->element), &bytes) ||
        output->elements * element_bytes(tensor->storage) > tensor->bytes ||
        output->elements * element_bytes(tensor->element) != bytes)
        return fail(SMARTMEM_BAD_PLAN, "the output %s has no size for these extents", text_of(tensor->name));
    return SMARTMEM_OK;
}

/* Takes the extents of the open dimensions for this run and those that follow. */
static smartmem_status take_extents(Session *session, const int64_t *dimensions) {
    const plan_index *index = &session->plan->index;
    size_t bytes = index->dimensions_count * sizeof *dimensions;
    if (!session->sized || memcmp(dimensions, session->dimensions, bytes) != 0) {
        session->sized = false;
        session->runs_so_sized = 0;
        recording_close(&session->recording);
        memcpy(session->dimensions, dimensions, bytes);
        TRY(extents_evaluate(index, session->dimensions, session->formulas));
        for (uint32_t i = 0; i < index->launches_count; ++i)
            TRY(size_launch(session, i));
        for (uint32_t i = 0; i < index->outputs_count; ++i)
            TRY(size_output(session, i));
        session->sized = true;
    }
    return check_shapes(session);
}

smartmem_status session_take_inputs(Session *session) {
    int64_t *dimensions = zeros(session->plan->index.dimensions_count, sizeof *dimensions);
    if (dimensions == NULL)
        return fail(SMARTMEM_NO_MEMORY, "there is too little memory");
    smartmem_status status = find_dimensions(session, dimensions);
    if (status == SMARTMEM_OK)
        status = take_extents(session, dimensions);
    free(dimensions);
    if (status == SMARTMEM_OK)
        session->run_number = (int64_t)atomic_fetch_add(&session->plan->runs, 1);
    return status;
}

/* @param lasting the data stay until the run's end, so that a device with memory of its own copies beside the host */
static smartmem_status write(Session *session, uint32_t input, const void *data, uint64_t bytes, bool lasting) {
    cl_memory memory = session->memory.tensors[session->plan->index.inputs[input]];
    cl_uint blocks = !lasting;
    cl_int code = cl.clEnqueueWriteBuffer(session->queue, memory, blocks, 0, (size_t)bytes, data, 0, NULL, NULL);
    return code == CL_SUCCESS ? SMARTMEM_OK : opencl_failed(code, "an input cannot be copied to the device");
}

static smartmem_status write_converted(Session *session, uint32_t input, const plan_tensor *tensor, const void *data,
                                       uint64_t elements) {
    uint64_t bytes = elements * element_bytes(tensor->storage);
    void *converted = malloc((size_t)bytes);
    if (converted == NULL)
        return fail(SMARTMEM_NO_MEMORY, "there is too little memory");
    elements_copy(converted, tensor->storage, data, tensor->element, (size_t)elements);
    smartmem_status status = write(session, input, converted, bytes, false);
    free(converted);
    return status;
}

smartmem_status session_upload(Session *session) {
    for (uint32_t i = 0; i < session->plan->index.inputs_count; ++i) {
        const plan_tensor *tensor = plan_input(session->plan, i);
        const void *data = session->inputs[i].set ? session->inputs[i].data : &session->run_number;
        uint64_t elements;
        if (!extents_product(tensor->shape, tensor->shape_count, session->formulas, 1, &elements) ||
            elements * element_bytes(tensor->storage) > tensor->bytes)
            return fail(SMARTMEM_BAD_PLAN, "the input %s is larger than its memory", text_of(tensor->name));
        if (!elements)
            continue;
        if (elements_same(tensor->element, tensor->storage))
            TRY(write(session, i, data, elements * element_bytes(tensor->element), true));
        else
            TRY(write_converted(session, i, tensor, data, elements));
    }
    return SMARTMEM_OK;
}
