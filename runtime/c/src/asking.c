#include "asking.h"

#include <stdio.h>
#include <stdlib.h>

#include "elements.h"

/* One question on its way. */
typedef struct Question {
    const Plan *plan;
    cl_queue queue;
    const plan_probe *probe;
    const plan_launch *launch;
    cl_memory *memory; /* of the arguments */
} Question;

static smartmem_status fill(const Question *question) {
    const plan_file *file = &question->plan->file;
    memory_setting setting = plan_memory_setting(question->plan);
    for (uint32_t i = 0; i < question->launch->arguments_count; ++i) {
        void *contents = NULL;
        smartmem_status status = probe_contents(&question->plan->index, file, question->probe, i, &contents);
        if (status == SMARTMEM_OK)
            status = memory_open_filled(&setting, probe_tensor(&question->plan->index, question->probe, i), contents,
                                        question->queue, question->memory + i);
        free(contents);
        TRY(status);
    }
    return SMARTMEM_OK;
}

static cl_int enqueue(const Question *question, cl_kernel kernel) {
    const plan_launch *launch = question->launch;
    size_t global[3] = {0}, local[3] = {0};
    for (cl_uint i = 0; i < launch->arguments_count; ++i) {
        cl_int code = cl.clSetKernelArg(kernel, i, sizeof(cl_memory), question->memory + i);
        if (code != CL_SUCCESS)
            return code;
    }
    for (size_t i = 0; i < launch->global_size_count; ++i) {
        global[i] = (size_t)launch->global_size[i];
        local[i] = i < launch->local_size_count ? launch->local_size[i] : 0;
        if (!global[i])
            return CL_SUCCESS;
    }
    cl_int code = cl.clEnqueueNDRangeKernel(question->queue, kernel, launch->global_size_count, NULL, global,
                                            launch->local_size_count ? local : NULL, 0, NULL, NULL);
    return code == CL_SUCCESS ? cl.clFinish(question->queue) : code;
}

/* The index of the element at a place of a buffer, else where it lies in the image. */
static void name_place(const plan_tensor *tensor, uint64_t place, char *name, size_t room) {
    size_t rank = tensor->shape_count, length = 0;
    uint64_t index[SMARTMEM_MAX_RANK] = {0};
    bool image = tensor->layout.memory == smartmem_format_Memory_IMAGE;
    if (image) {
        uint64_t texel = place / 4;
        snprintf(name, room, " lane %u of the texel (%llu, %llu)", (unsigned)(place % 4),
                 (unsigned long long)(texel % tensor->width), (unsigned long long)(texel / tensor->width));
        return;
    }
    bool known = rank <= SMARTMEM_MAX_RANK && tensor->layout.order_count == rank;
    for (size_t i = rank; known && i-- > 0;) {
        int32_t axis = tensor->layout.order[i];
        known = axis >= 0 && (size_t)axis < rank && tensor->shape[axis] > 0;
        if (known) {
            index[axis] = place % (uint64_t)tensor->shape[axis];
            place /= (uint64_t)tensor->shape[axis];
        }
    }
    if (!known) {
        snprintf(name, room, " element %llu of its memory", (unsigned long long)place);
        return;
    }
    length = (size_t)snprintf(name, room, "[");
    for (size_t i = 0; i < rank && length < room; ++i)
        length += (size_t)snprintf(name + length, room - length, "%s%llu", i ? ", " : "", (unsigned long long)index[i]);
    if (length < room)
        snprintf(name + length, room - length, "]");
}

static void say(const Question *question, const smartmem_format_Answer *answer, const Difference *difference,
                char said[ERROR_TEXT]) {
    const plan_tensor *tensor = probe_tensor(&question->plan->index, question->probe, answer->argument);
    char place[256], allowed[64] = "";
    name_place(tensor, difference->place, place, sizeof place);
    if (answer->bound > 0)
        snprintf(allowed, sizeof allowed, " (at most %.3g apart)", answer->bound);
    snprintf(said, ERROR_TEXT, "%.256s%s is %.9g and must be %.9g%s; %llu of %llu elements differ", text_of(tensor->name),
             place, difference->found, difference->expected, allowed, (unsigned long long)difference->count,
             (unsigned long long)difference->elements);
}

static smartmem_status compare(const Question *question, const smartmem_format_Answer *answer, char said[ERROR_TEXT]) {
    const plan_tensor *tensor = probe_tensor(&question->plan->index, question->probe, answer->argument);
    Difference difference = {0};
    void *found = malloc((size_t)tensor->bytes + 1);
    if (found == NULL)
        return fail(SMARTMEM_NO_MEMORY, "there is too little memory for the self-test");
    smartmem_status status = memory_read(tensor, question->memory[answer->argument], question->queue, found);
    if (status == SMARTMEM_OK)
        status = probe_compare(&question->plan->index, &question->plan->file, question->probe, answer, found, &difference);
    if (status == SMARTMEM_OK && difference.count)
        say(question, answer, &difference, said);
    free(found);
    return status;
}

static smartmem_status run(const Question *question, char said[ERROR_TEXT]) {
    const Plan *plan = question->plan;
    cl_kernel kernel = NULL;
    TRY(fill(question));
    if (programs_kernel(&plan->programs, &plan->index, question->probe->launches[0], &kernel) != SMARTMEM_OK) {
        snprintf(said, ERROR_TEXT, "%s", smartmem_last_error());
        return SMARTMEM_OK;
    }
    cl_int code = enqueue(question, kernel);
    cl.clReleaseKernel(kernel);
    if (code != CL_SUCCESS)
        snprintf(said, ERROR_TEXT, "the driver refuses the kernel (OpenCL error %d)", (int)code);
    smartmem_status status = SMARTMEM_OK;
    for (size_t i = 0; code == CL_SUCCESS && status == SMARTMEM_OK && !*said && i < question->probe->answers_count; ++i)
        status = compare(question, question->probe->answers + i, said);
    return status;
}

smartmem_status ask(const Plan *plan, cl_queue queue, const plan_probe *probe, char said[ERROR_TEXT]) {
    const plan_launch *launch = plan->index.launches + probe->launches[0];
    Question question = {plan, queue, probe, launch, zeros(launch->arguments_count, sizeof(cl_memory))};
    said[0] = 0;
    if (question.memory == NULL)
        return fail(SMARTMEM_NO_MEMORY, "there is too little memory for the self-test");
    smartmem_status status = run(&question, said);
    for (uint32_t i = 0; i < launch->arguments_count; ++i)
        if (question.memory[i] != NULL)
            cl.clReleaseMemObject(question.memory[i]);
    free(question.memory);
    return status;
}
