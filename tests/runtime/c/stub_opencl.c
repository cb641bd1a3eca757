/* An OpenCL library without a device: it keeps memory, counts its objects and calls, and fails where a test wants it to. It
 * computes the kernels `add` and `twice` of tests/runtime/plans.py in buffers, one element wrongly if $STUB_WRONG names the
 * kernel between commas, and nothing else. $STUB_LOG names a file for the calls. $STUB_NAME, $STUB_EXTENSIONS, $STUB_TYPE,
 * $STUB_DRIVER, $STUB_IMAGE, $STUB_LOCAL, $STUB_GROUP, $STUB_CAPABILITY (its major number), $STUB_QUEUE and
 * $STUB_RECORDABLE are what the device says of itself. $STUB_BINARY is the binary of every program that is made from a text;
 * the log then has options, and binaries from which programs are made. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stub_opencl.h"

static atomic_long calls, fail_at, live;
static FILE *stream;

/* For tests: how many calls there were, how many objects are not released, and which call from now on fails. */
EXPORT long stub_calls(void) { return calls; }
EXPORT long stub_live(void) { return live; }
/* Bytes at multiples of which the device says that parts of buffers begin. */
static long base_alignment = 128;
EXPORT void stub_align(long bytes) { base_alignment = bytes; }
EXPORT void stub_fail_at(long call) {
    calls = 0;
    fail_at = call;
}

/* Adds a line to the log. */
EXPORT void stub_note(const char *line) {
    const char *path = getenv("STUB_LOG");
    if (stream == NULL && path != NULL)
        stream = fopen(path, "w");
    if (stream != NULL) {
        fprintf(stream, "%s\n", line);
        fflush(stream);
    }
}

int stub_fails(const char *name) {
    stub_note(name);
    return atomic_fetch_add(&calls, 1) + 1 == fail_at;
}
void *stub_made(size_t bytes, void *host) {
    object *one = calloc(1, sizeof *one);
    one->users = 1;
    one->bytes = bytes;
    one->owns = host == NULL;
    one->data = host != NULL ? host : calloc(1, bytes + 1);
    ++live;
    return one;
}

cl_int stub_released(void *given) {
    object *one = given;
    if (atomic_fetch_sub(&one->users, 1) > 1)
        return CL_SUCCESS;
    if (one->owns)
        free(one->data);
    if (one->parent != NULL)
        stub_released(one->parent);
    free(one);
    --live;
    return CL_SUCCESS;
}

static void *created(size_t bytes, void *host, cl_int *code) {
    *code = CL_SUCCESS;
    return stub_made(bytes, host);
}

static cl_int told(const void *value, size_t size, size_t room, void *to, size_t *needed) {
    if (needed != NULL)
        *needed = size;
    if (to != NULL && room < size)
        return -30;
    if (to != NULL)
        memcpy(to, value, size);
    return CL_SUCCESS;
}

EXPORT cl_int clGetPlatformIDs(cl_uint room, cl_platform *platforms, cl_uint *count) {
    static int platform;
    if (FAILS)
        return -1001;
    if (room)
        *platforms = (cl_platform)&platform;
    *count = 1;
    return CL_SUCCESS;
}

EXPORT cl_int clGetPlatformInfo(cl_platform platform, cl_uint what, size_t room, void *to, size_t *needed) {
    const char *text = what == CL_PLATFORM_NAME ? "Stub" : "OpenCL 3.0 Stub 1.0";
    (void)platform;
    return FAILS ? -5 : told(text, strlen(text) + 1, room, to, needed);
}

EXPORT cl_int clGetDeviceIDs(cl_platform platform, cl_bits kind, cl_uint room, cl_device *devices, cl_uint *count) {
    static int device;
    (void)platform, (void)kind;
    if (FAILS)
        return -5;
    if (room)
        *devices = (cl_device)&device;
    *count = 1;
    return CL_SUCCESS;
}

static cl_int feature_list(size_t room, void *to, size_t *needed) {
    static const cl_name_version FEATURES[] = {{1, "__opencl_c_atomic_order_acq_rel"},
                                               {1, "__opencl_c_atomic_scope_device"}};
    return told(FEATURES, sizeof FEATURES, room, to, needed);
}

static const char *said(const char *variable, const char *otherwise) {
    const char *value = getenv(variable);
    return value != NULL ? value : otherwise;
}

uint64_t stub_number(const char *variable, uint64_t otherwise) {
    const char *value = getenv(variable);
    return value != NULL ? strtoull(value, NULL, 10) : otherwise;
}

static cl_int told_text(const char *text, size_t room, void *to, size_t *needed) {
    return told(text, strlen(text) + 1, room, to, needed);
}

EXPORT cl_int clGetDeviceInfo(cl_device device, cl_uint what, size_t room, void *to, size_t *needed) {
    uint64_t number = 0;
    (void)device;
    if (FAILS)
        return -5;
    switch (what) {
    case CL_DEVICE_NAME: return told_text(said("STUB_NAME", "stub device"), room, to, needed);
    case CL_DEVICE_EXTENSIONS: return told_text(said("STUB_EXTENSIONS", "cl_khr_fp64"), room, to, needed);
    case CL_DRIVER_VERSION: return told_text(said("STUB_DRIVER", "1.0"), room, to, needed);
    case CL_DEVICE_VERSION: return told("OpenCL 3.0 stub", 16, room, to, needed);
    case CL_DEVICE_OPENCL_C_FEATURES: return feature_list(room, to, needed);
    case CL_DEVICE_TYPE: number = stub_number("STUB_TYPE", CL_DEVICE_TYPE_CPU); break;
    case CL_DEVICE_IMAGE_SUPPORT: number = 1; break;
    case CL_DEVICE_IMAGE2D_MAX_WIDTH:
    case CL_DEVICE_IMAGE2D_MAX_HEIGHT: number = stub_number("STUB_IMAGE", 16384); break;
    case CL_DEVICE_LOCAL_MEM_SIZE: number = stub_number("STUB_LOCAL", 32768); break;
    case CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV: number = stub_number("STUB_CAPABILITY", 0); break;
    case CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR: number = stub_number("STUB_QUEUE", 0); break;
    case CL_DEVICE_RECORDABLE_QUEUE_MAX_SIZE: number = stub_number("STUB_RECORDABLE", 100); break;
    case CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV: number = 0; break;
    case CL_DEVICE_MAX_WORK_GROUP_SIZE: number = stub_number("STUB_GROUP", 1024); break;
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE: number = 1u << 30; break;
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN: number = 8 * base_alignment; break;
    default: number = 1; break;
    }
    return told(&number, room < 8 ? room : 8, room, to, needed);
}

EXPORT cl_context clCreateContext(const cl_property *properties, cl_uint count, const cl_device *devices,
                                  void (*notify)(const char *, const void *, size_t, void *), void *user, cl_int *code) {
    (void)properties, (void)count, (void)devices, (void)notify, (void)user;
    *code = -5;
    return FAILS ? NULL : created(1, NULL, code);
}

EXPORT cl_queue clCreateCommandQueue(cl_context context, cl_device device, cl_bits properties, cl_int *code) {
    (void)context, (void)device;
    *code = -6;
    object *one = FAILS ? NULL : created(1, NULL, code);
    if (one != NULL)
        one->recordable = (properties & CL_QUEUE_RECORDABLE_QCOM) != 0;
    return (cl_queue)one;
}

/* Where kernels may compute with memory that was not allocated here: they access aligned vectors of 64 bytes. */
static int usable(cl_bits flags, const void *host) {
    return !(flags & CL_MEM_USE_HOST_PTR) || (uintptr_t)host % 64 == 0;
}

EXPORT cl_memory clCreateBuffer(cl_context context, cl_bits flags, size_t bytes, void *host, cl_int *code) {
    (void)context;
    *code = -4;
    return FAILS || !usable(flags, host) ? NULL : created(bytes, flags & CL_MEM_USE_HOST_PTR ? host : NULL, code);
}

EXPORT cl_memory clCreateSubBuffer(cl_memory parent, cl_bits flags, cl_uint kind, const void *region, cl_int *code) {
    const cl_region *part = region;
    object *whole = (object *)parent;
    (void)flags, (void)kind;
    *code = -13;
    if (FAILS || part->origin > whole->bytes || part->size > whole->bytes - part->origin)
        return NULL;
    object *one = created(part->size, whole->data + part->origin, code);
    one->parent = whole;
    ++whole->users;
    return (cl_memory)one;
}

EXPORT cl_memory clCreateImage(cl_context context, cl_bits flags, const cl_image_format *format,
                               const cl_image_desc *description, void *host, cl_int *code) {
    (void)context, (void)flags, (void)host;
    size_t texel = format->type == CL_HALF_FLOAT ? 8 : 16;
    *code = -4;
    return FAILS ? NULL : created(description->width * description->height * texel, NULL, code);
}

EXPORT cl_int clEnqueueWriteBuffer(cl_queue queue, cl_memory memory, cl_uint blocks, size_t offset, size_t bytes,
                                   const void *from, cl_uint count, const cl_event *events, cl_event *event) {
    object *one = (object *)memory;
    (void)queue, (void)blocks, (void)count, (void)events, (void)event;
    if (FAILS || offset + bytes > one->bytes)
        return -5;
    memcpy(one->data + offset, from, bytes);
    return CL_SUCCESS;
}

EXPORT cl_int clEnqueueReadBuffer(cl_queue queue, cl_memory memory, cl_uint blocks, size_t offset, size_t bytes,
                                  void *to, cl_uint count, const cl_event *events, cl_event *event) {
    object *one = (object *)memory;
    (void)queue, (void)blocks, (void)count, (void)events, (void)event;
    if (FAILS || offset + bytes > one->bytes)
        return -5;
    memcpy(to, one->data + offset, bytes);
    return CL_SUCCESS;
}

EXPORT cl_int clEnqueueWriteImage(cl_queue queue, cl_memory memory, cl_uint blocks, const size_t *origin,
                                  const size_t *region, size_t row, size_t slice, const void *from, cl_uint count,
                                  const cl_event *events, cl_event *event) {
    object *one = (object *)memory;
    (void)queue, (void)blocks, (void)origin, (void)region, (void)row, (void)slice, (void)count, (void)events,
        (void)event;
    if (FAILS)
        return -5;
    memcpy(one->data, from, one->bytes);
    return CL_SUCCESS;
}

EXPORT cl_int clEnqueueReadImage(cl_queue queue, cl_memory memory, cl_uint blocks, const size_t *origin,
                                 const size_t *region, size_t row, size_t slice, void *to, cl_uint count,
                                 const cl_event *events, cl_event *event) {
    object *one = (object *)memory;
    (void)queue, (void)blocks, (void)origin, (void)region, (void)row, (void)slice, (void)count, (void)events,
        (void)event;
    if (FAILS)
        return -5;
    memcpy(to, one->data, one->bytes);
    return CL_SUCCESS;
}

EXPORT cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char **texts, const size_t *sizes,
                                            cl_int *code) {
    (void)context, (void)count, (void)texts, (void)sizes;
    *code = -6;
    return FAILS ? NULL : created(1, NULL, code);
}

EXPORT cl_program clCreateProgramWithBinary(cl_context context, cl_uint count, const cl_device *devices,
                                            const size_t *sizes, const unsigned char **binaries, cl_int *status,
                                            cl_int *code) {
    (void)context, (void)count, (void)devices, (void)sizes;
    *code = *status = -42;
    if (getenv("STUB_BINARY") != NULL)
        stub_note((const char *)binaries[0]);
    return FAILS ? NULL : created(1, NULL, code);
}

EXPORT cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device *devices, const char *options,
                             void (*notify)(cl_program, void *), void *user) {
    (void)program, (void)count, (void)devices, (void)notify, (void)user;
    if (getenv("STUB_BINARY") != NULL)
        stub_note(options);
    return FAILS ? -11 : CL_SUCCESS;
}

EXPORT cl_int clGetProgramInfo(cl_program program, cl_uint what, size_t room, void *to, size_t *needed) {
    const char *binary = getenv("STUB_BINARY") != NULL ? getenv("STUB_BINARY") : "stub";
    size_t bytes = strlen(binary);
    (void)program;
    if (FAILS)
        return -5;
    if (what == CL_PROGRAM_BINARY_SIZES)
        return told(&bytes, sizeof bytes, room, to, needed);
    memcpy(*(unsigned char **)to, binary, bytes);
    return CL_SUCCESS;
}

EXPORT cl_int clGetProgramBuildInfo(cl_program program, cl_device device, cl_uint what, size_t room, void *to,
                                    size_t *needed) {
    (void)program, (void)device, (void)what;
    return FAILS ? -5 : told("a log", 6, room, to, needed);
}

EXPORT cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *code) {
    (void)program;
    *code = -46;
    if (FAILS)
        return NULL;
    object *one = created(1, NULL, code);
    snprintf(one->name, sizeof one->name, "%s", name);
    return (cl_kernel)one;
}

EXPORT cl_int clSetKernelArg(cl_kernel kernel, cl_uint place, size_t bytes, const void *value) {
    if (FAILS)
        return -49;
    if (place < ARGUMENTS && bytes == sizeof(object *))
        memcpy(((object *)kernel)->arguments + place, value, bytes);
    return CL_SUCCESS;
}

/* The elements of an argument; NULL where it has less. */
static float *elements(const object *kernel, int place) {
    const object *one = kernel->arguments[place];
    return one != NULL && one->bytes >= ELEMENTS * sizeof(float) ? (float *)(void *)one->data : NULL;
}

static int is_wrong(const char *name) {
    const char *names = getenv("STUB_WRONG"), *at = names == NULL ? NULL : strstr(names, name);
    size_t length = strlen(name);
    while (at != NULL && !((at == names || at[-1] == ',') && (at[length] == ',' || !at[length])))
        at = strstr(at + 1, name);
    return at != NULL;
}

void stub_compute(const object *kernel) {
    int adds = strncmp(kernel->name, "add", 3) == 0;
    if (!adds && strncmp(kernel->name, "twice", 5) != 0)
        return;
    const float *first = elements(kernel, 0), *second = adds ? elements(kernel, 1) : first;
    float *result = elements(kernel, adds ? 2 : 1);
    for (int i = 0; first != NULL && second != NULL && result != NULL && i < ELEMENTS; ++i)
        result[i] = first[i] + second[i] + (i == WRONG_ELEMENT && is_wrong(kernel->name) ? 0.5f : 0.0f);
}

EXPORT cl_int clEnqueueNDRangeKernel(cl_queue queue, cl_kernel kernel, cl_uint rank, const size_t *offset,
                                     const size_t *global, const size_t *local, cl_uint count, const cl_event *events,
                                     cl_event *event) {
    (void)rank, (void)offset, (void)global, (void)local, (void)count, (void)events;
    if (FAILS)
        return -54;
    if (((object *)queue)->recordable)
        return stub_record(((object *)queue)->recording, (object *)kernel);
    stub_compute((object *)kernel);
    if (event != NULL)
        *event = stub_made(1, NULL);
    return CL_SUCCESS;
}

EXPORT cl_int clGetEventProfilingInfo(cl_event event, cl_uint what, size_t room, void *to, size_t *needed) {
    uint64_t time = what;
    (void)event;
    return FAILS ? -7 : told(&time, sizeof time, room, to, needed);
}

EXPORT cl_int clWaitForEvents(cl_uint count, const cl_event *events) {
    (void)count, (void)events;
    return FAILS ? -14 : CL_SUCCESS;
}

#define QUEUE_CALL(name)                                                                                               \
    EXPORT cl_int name(cl_queue queue) {                                                                               \
        (void)queue;                                                                                                   \
        return FAILS ? -36 : CL_SUCCESS;                                                                               \
    }
QUEUE_CALL(clFlush)
QUEUE_CALL(clFinish)

#define RELEASE(name, type)                                                                                            \
    EXPORT cl_int name(type given) { return stub_released(given); }
RELEASE(clReleaseContext, cl_context)
RELEASE(clReleaseCommandQueue, cl_queue)
RELEASE(clReleaseMemObject, cl_memory)
RELEASE(clReleaseProgram, cl_program)
RELEASE(clReleaseKernel, cl_kernel)
RELEASE(clReleaseEvent, cl_event)
