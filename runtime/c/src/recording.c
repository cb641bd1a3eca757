#include "recording.h"

#include <string.h>

struct recording_way {
    cl_int (*begin)(Recording *recording);
    cl_int (*add)(Recording *recording, const recorded_launch *launch);
    cl_int (*end)(Recording *recording);
    cl_int (*replay)(const Recording *recording);
    void (*close)(Recording *recording);
};

/* --- cl_khr_command_buffer, versions 0.9.x: what is called here is the same in all of them --- */

static cl_int khr_begin(Recording *recording) {
    cl_int code = CL_OUT_OF_RESOURCES;
    recording->handle = recording->recorder->khr.clCreateCommandBufferKHR(1, &recording->queue, NULL, &code);
    return recording->handle != NULL ? CL_SUCCESS : code;
}

static cl_int khr_add(Recording *recording, const recorded_launch *launch) {
    cl_uint waits = recording->launches > 0, after = 0;
    cl_int code = recording->recorder->khr.clCommandNDRangeKernelKHR(
        recording->handle, NULL, NULL, launch->kernel, launch->rank, NULL, launch->global, launch->local, waits,
        waits ? &recording->before : NULL, &after, NULL);
    recording->before = after;
    return code;
}

static cl_int khr_end(Recording *recording) {
    return recording->recorder->khr.clFinalizeCommandBufferKHR(recording->handle);
}

static cl_int khr_replay(const Recording *recording) {
    return recording->recorder->khr.clEnqueueCommandBufferKHR(0, NULL, recording->handle, 0, NULL, NULL);
}

static void khr_close(Recording *recording) {
    recording->recorder->khr.clReleaseCommandBufferKHR(recording->handle);
}

static const recording_way KHR = {khr_begin, khr_add, khr_end, khr_replay, khr_close};

/* --- cl_qcom_recordable_queues --- */

static cl_int qcom_begin(Recording *recording) {
    const Recorder *recorder = recording->recorder;
    cl_int code = CL_OUT_OF_RESOURCES;
    recording->own_queue = cl.clCreateCommandQueue(recorder->context, recorder->device, CL_QUEUE_RECORDABLE_QCOM, &code);
    if (recording->own_queue == NULL)
        return code;
    recording->handle = recorder->qcom.clNewRecordingQCOM(recording->own_queue, &code);
    if (recording->handle != NULL)
        return CL_SUCCESS;
    cl.clReleaseCommandQueue(recording->own_queue);
    return code;
}

static cl_int qcom_add(Recording *recording, const recorded_launch *launch) {
    return cl.clEnqueueNDRangeKernel(recording->own_queue, launch->kernel, launch->rank, NULL, launch->global,
                                     launch->local, 0, NULL, NULL);
}

static cl_int qcom_end(Recording *recording) {
    return recording->recorder->qcom.clEndRecordingQCOM(recording->handle);
}

static cl_int qcom_replay(const Recording *recording) {
    return recording->recorder->qcom.clEnqueueRecordingQCOM(recording->queue, recording->handle, 0, NULL, 0, NULL, 0,
                                                            NULL, 0, NULL, 0, NULL, NULL);
}

static void qcom_close(Recording *recording) {
    recording->recorder->qcom.clReleaseRecordingQCOM(recording->handle);
    cl.clReleaseCommandQueue(recording->own_queue);
}

static const recording_way QCOM = {qcom_begin, qcom_add, qcom_end, qcom_replay, qcom_close};

/* --- what the device offers --- */

#define EXTENSION_FIND(result, name, parameters)                                                                       \
    found = cl.clGetExtensionFunctionAddressForPlatform(platform, #name);                                              \
    if (found == NULL)                                                                                                 \
        return false;                                                                                                  \
    memcpy(&functions->name, &found, sizeof found);

static bool find_khr(khr_functions *functions, cl_platform platform) {
    void *found;
    KHR_FUNCTIONS(EXTENSION_FIND)
    return true;
}

static bool find_qcom(qcom_functions *functions, cl_platform platform) {
    void *found;
    QCOM_FUNCTIONS(EXTENSION_FIND)
    return true;
}

/* Whether a queue without properties will do. */
static bool takes_plain_queues(cl_device device) {
    uint64_t required = 1;
    return cl.clGetDeviceInfo(device, CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR, sizeof required, &required,
                              NULL) == CL_SUCCESS &&
           !required;
}

static uint64_t most_recorded(cl_device device) {
    cl_uint most = 0;
    bool known = cl.clGetDeviceInfo(device, CL_DEVICE_RECORDABLE_QUEUE_MAX_SIZE, sizeof most, &most, NULL) == CL_SUCCESS;
    return known ? most : 0;
}

void recorder_find(Recorder *recorder, const Device *device, cl_context context) {
    *recorder = (Recorder){.context = context, .device = device->handle, .most_launches = UINT64_MAX};
    if (device_has_extension(device, "cl_khr_command_buffer") && takes_plain_queues(device->handle) &&
        find_khr(&recorder->khr, device->platform)) {
        recorder->way = &KHR;
    } else if (device_has_extension(device, "cl_qcom_recordable_queues") &&
               find_qcom(&recorder->qcom, device->platform)) {
        recorder->way = &QCOM;
        recorder->most_launches = most_recorded(device->handle);
    }
}

/* --- recordings --- */

smartmem_status recording_begin(Recording *recording, const Recorder *recorder, cl_queue queue) {
    *recording = (Recording){.recorder = recorder, .queue = queue};
    cl_int code = recorder->way->begin(recording);
    if (code == CL_SUCCESS)
        return SMARTMEM_OK;
    *recording = (Recording){0};
    return opencl_failed(code, "the device offers to record launches, and does not begin");
}

cl_int recording_add(Recording *recording, const recorded_launch *launch) {
    cl_int code = recording->recorder->way->add(recording, launch);
    recording->launches += code == CL_SUCCESS;
    return code;
}

smartmem_status recording_end(Recording *recording) {
    cl_int code = recording->recorder->way->end(recording);
    return code == CL_SUCCESS ? SMARTMEM_OK : opencl_failed(code, "the device does not take the recorded launches");
}

smartmem_status recording_replay(const Recording *recording) {
    cl_int code = recording->recorder->way->replay(recording);
    return code == CL_SUCCESS ? SMARTMEM_OK : opencl_failed(code, "the device does not replay the recorded launches");
}

void recording_close(Recording *recording) {
    if (recording->recorder != NULL)
        recording->recorder->way->close(recording);
    *recording = (Recording){0};
}
