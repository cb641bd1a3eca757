/* Recordings on the stub of OpenCL, by cl_khr_command_buffer and by cl_qcom_recordable_queues. A recording keeps each kernel
 * with the arguments that it had. Replays are refused on what is not ended. $STUB_WITHOUT names a function that is not there.
 */

#include <stdlib.h>
#include <string.h>

#include "stub_opencl.h"

cl_int stub_record(object *recording, const object *kernel) {
    if (recording == NULL || recording->ended || recording->count == RECORDED)
        return -1138;
    object *copy = stub_made(1, NULL);
    memcpy(copy->name, kernel->name, sizeof copy->name);
    memcpy(copy->arguments, kernel->arguments, sizeof copy->arguments);
    recording->recorded[recording->count++] = copy;
    return CL_SUCCESS;
}

static cl_int replay(const object *recording) {
    if (!recording->ended)
        return -1138;
    for (int i = 0; i < recording->count; ++i)
        stub_compute(recording->recorded[i]);
    return CL_SUCCESS;
}

static cl_int forget(object *recording) {
    for (int i = 0; i < recording->count; ++i)
        stub_released(recording->recorded[i]);
    return stub_released(recording);
}

static void *clCreateCommandBufferKHR(cl_uint count, const cl_queue *queues, const cl_bits *properties, cl_int *code) {
    (void)count, (void)queues, (void)properties;
    *code = FAILS ? -6 : CL_SUCCESS;
    return *code == CL_SUCCESS ? stub_made(1, NULL) : NULL;
}

static cl_int clCommandNDRangeKernelKHR(void *recording, cl_queue queue, const cl_bits *properties, cl_kernel kernel,
                                        cl_uint rank, const size_t *offset, const size_t *global, const size_t *local,
                                        cl_uint count, const cl_uint *waits, cl_uint *place, void **handle) {
    object *one = recording;
    (void)queue, (void)properties, (void)rank, (void)offset, (void)global, (void)local, (void)handle;
    /* each waits for the one before it */
    if (FAILS || count != (one->count > 0) || (count && *waits != (cl_uint)one->count))
        return -1139;
    cl_int code = stub_record(one, (object *)kernel);
    *place = (cl_uint)one->count;
    return code;
}

static cl_int clFinalizeCommandBufferKHR(void *recording) {
    if (FAILS)
        return -1138;
    ((object *)recording)->ended = 1;
    return CL_SUCCESS;
}

static cl_int clEnqueueCommandBufferKHR(cl_uint queues, cl_queue *queue, void *recording, cl_uint count,
                                        const cl_event *events, cl_event *event) {
    (void)queues, (void)queue, (void)count, (void)events, (void)event;
    return FAILS ? -1138 : replay(recording);
}

static cl_int clReleaseCommandBufferKHR(void *recording) {
    cl_int code = FAILS ? -1138 : CL_SUCCESS;
    forget(recording);
    return code;
}

static void *clNewRecordingQCOM(cl_queue queue, cl_int *code) {
    object *one = (object *)queue;
    *code = FAILS || !one->recordable ? -36 : CL_SUCCESS;
    if (*code == CL_SUCCESS)
        one->recording = stub_made(1, NULL);
    return *code == CL_SUCCESS ? one->recording : NULL;
}

static cl_int clEndRecordingQCOM(void *recording) {
    if (FAILS)
        return -36;
    ((object *)recording)->ended = 1;
    return CL_SUCCESS;
}

static cl_int clEnqueueRecordingQCOM(cl_queue queue, void *recording, size_t arguments, const void *argument,
                                     size_t offsets, const void *offset, size_t globals, const void *global,
                                     size_t locals, const void *local, cl_uint count, const cl_event *events,
                                     cl_event *event) {
    (void)arguments, (void)argument, (void)offsets, (void)offset, (void)globals, (void)global, (void)locals;
    (void)local, (void)count, (void)events, (void)event;
    return FAILS || ((object *)queue)->recordable ? -36 : replay(recording);
}

static cl_int clReleaseRecordingQCOM(void *recording) {
    cl_int code = FAILS ? -36 : CL_SUCCESS;
    forget(recording);
    return code;
}

EXPORT void *clGetExtensionFunctionAddressForPlatform(cl_platform platform, const char *name) {
    const char *without = getenv("STUB_WITHOUT");
    void *found = NULL;
    (void)platform;
    if (FAILS || (without != NULL && strcmp(without, name) == 0))
        return NULL;
#define IS(function, result, parameters)                                                                               \
    if (strcmp(name, #function) == 0) {                                                                                \
        result(*address) parameters = function;                                                                        \
        memcpy(&found, &address, sizeof found);                                                                        \
    }
#define HAS(result, function, parameters) IS(function, result, parameters)
    KHR_FUNCTIONS(HAS)
    QCOM_FUNCTIONS(HAS)
    return found;
}
