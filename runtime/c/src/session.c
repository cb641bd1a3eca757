#include "session.h"

#include <stdlib.h>

#include "extents.h"

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
    session->given_up = zeros(index->launches_count, sizeof *session->given_up);
    session->global_size = zeros(index->launches_count, sizeof *session->global_size);
    session->dimensions = zeros(index->dimensions_count, sizeof *session->dimensions);
    session->formulas = zeros(index->formulas_count, sizeof *session->formulas);
    session->inputs = zeros(index->inputs_count, sizeof *session->inputs);
    session->outputs = zeros(index->outputs_count, sizeof *session->outputs);
    if (!session->kernels || !session->given_up || !session->global_size || !session->dimensions || !session->formulas || !session->inputs ||
        !session->outputs)
        return no_memory();
    session->may_record = options->record >= 0 && session->plan->recorder.way != NULL &&
                          index->launches_count <= session->plan->recorder.most_launches;
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
    recording_close(&session->recording);
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
    free(session->given_up);
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

smartmem_status session_run(Session *session, bool watched) {
    session->has_result = false;
    TRY(session_take_inputs(session));
    smartmem_status status = session_upload(session);
    if (status == SMARTMEM_OK)
        status = session_launch(session, watched);
    if (status == SMARTMEM_OK)
        status = session_download(session);
    else
        cl.clFinish(session->queue); /* the application may free its inputs */
    session->has_result = status == SMARTMEM_OK;
    session->runs_so_sized += session->has_result;
    return status;
}
