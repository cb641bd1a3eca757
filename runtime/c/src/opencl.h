/* The part of OpenCL that the library uses, found at run time (Khronos' OpenCL 3.0 API specification). */
#ifndef SMARTMEM_OPENCL_H
#define SMARTMEM_OPENCL_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_bits;
typedef intptr_t cl_property;
typedef struct _cl_platform_id *cl_platform;
typedef struct _cl_device_id *cl_device;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_queue;
typedef struct _cl_mem *cl_memory;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;
typedef struct _cl_event *cl_event;

typedef struct cl_image_format {
    cl_uint order;
    cl_uint type;
} cl_image_format;

typedef struct cl_image_desc {
    cl_uint type;
    size_t width, height, depth, array_size, row_pitch, slice_pitch;
    cl_uint mip_levels, samples;
    cl_memory buffer;
} cl_image_desc;

typedef struct cl_region {
    size_t origin, size;
} cl_region;

typedef struct cl_name_version {
    cl_uint version;
    char name[64];
} cl_name_version;

enum {
    CL_SUCCESS = 0,
    CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
    CL_OUT_OF_RESOURCES = -5,
    CL_OUT_OF_HOST_MEMORY = -6,
    CL_PLATFORM_VERSION = 0x0901,
    CL_PLATFORM_NAME = 0x0902,
    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    CL_DEVICE_IMAGE2D_MAX_WIDTH = 0x1011,
    CL_DEVICE_IMAGE2D_MAX_HEIGHT = 0x1012,
    CL_DEVICE_IMAGE_SUPPORT = 0x1016,
    CL_DEVICE_MEM_BASE_ADDR_ALIGN = 0x1019,
    CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    CL_DEVICE_NAME = 0x102B,
    CL_DRIVER_VERSION = 0x102D,
    CL_DEVICE_VERSION = 0x102F,
    CL_DEVICE_EXTENSIONS = 0x1030,
    CL_DEVICE_OPENCL_C_FEATURES = 0x106F,
    CL_QUEUE_PROPERTIES = 0x1093,
    CL_PROGRAM_BINARY_SIZES = 0x1165,
    CL_PROGRAM_BINARIES = 0x1166,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_PROFILING_COMMAND_START = 0x1282,
    CL_PROFILING_COMMAND_END = 0x1283,
    CL_RGBA = 0x10B5,
    CL_HALF_FLOAT = 0x10DD,
    CL_FLOAT = 0x10DE,
    CL_MEM_OBJECT_IMAGE2D = 0x10F1,
    CL_BUFFER_CREATE_TYPE_REGION = 0x1220,
    CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR = 0x12AA,
    CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV = 0x4000,
    CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV = 0x4001,
    CL_DEVICE_RECORDABLE_QUEUE_MAX_SIZE = 0x41DE,
    CL_DEVICE_TYPE_CPU = 2,
    CL_DEVICE_TYPE_GPU = 4,
    CL_DEVICE_TYPE_ACCELERATOR = 8,
    CL_MEM_READ_WRITE = 1,
    CL_MEM_READ_ONLY = 4,
    CL_MEM_USE_HOST_PTR = 8,
    CL_QUEUE_PROFILING_ENABLE = 2,
    CL_QUEUE_RECORDABLE_QCOM = 1 << 30
};

#define CL_DEVICE_TYPE_ALL UINT64_C(0xFFFFFFFF)

/* F(result, name, parameters) for each function */
#define OPENCL_FUNCTIONS(F)                                                                                            \
    F(cl_int, clGetPlatformIDs, (cl_uint, cl_platform *, cl_uint *))                                                   \
    F(cl_int, clGetPlatformInfo, (cl_platform, cl_uint, size_t, void *, size_t *))                                     \
    F(void *, clGetExtensionFunctionAddressForPlatform, (cl_platform, const char *))                                   \
    F(cl_int, clGetDeviceIDs, (cl_platform, cl_bits, cl_uint, cl_device *, cl_uint *))                                 \
    F(cl_int, clGetDeviceInfo, (cl_device, cl_uint, size_t, void *, size_t *))                                         \
    F(cl_context, clCreateContext,                                                                                     \
      (const cl_property *, cl_uint, const cl_device *, void (*)(const char *, const void *, size_t, void *), void *,  \
       cl_int *))                                                                                                      \
    F(cl_int, clReleaseContext, (cl_context))                                                                          \
    F(cl_queue, clCreateCommandQueue, (cl_context, cl_device, cl_bits, cl_int *))                                      \
    F(cl_int, clReleaseCommandQueue, (cl_queue))                                                                       \
    F(cl_int, clFlush, (cl_queue))                                                                                     \
    F(cl_int, clFinish, (cl_queue))                                                                                    \
    F(cl_memory, clCreateBuffer, (cl_context, cl_bits, size_t, void *, cl_int *))                                      \
    F(cl_memory, clCreateSubBuffer, (cl_memory, cl_bits, cl_uint, const void *, cl_int *))                             \
    F(cl_memory, clCreateImage,                                                                                        \
      (cl_context, cl_bits, const cl_image_format *, const cl_image_desc *, void *, cl_int *))                         \
    F(cl_int, clReleaseMemObject, (cl_memory))                                                                         \
    F(cl_int, clEnqueueWriteBuffer,                                                                                    \
      (cl_queue, cl_memory, cl_uint, size_t, size_t, const void *, cl_uint, const cl_event *, cl_event *))             \
    F(cl_int, clEnqueueReadBuffer,                                                                                     \
      (cl_queue, cl_memory, cl_uint, size_t, size_t, void *, cl_uint, const cl_event *, cl_event *))                   \
    F(cl_int, clEnqueueWriteImage,                                                                                     \
      (cl_queue, cl_memory, cl_uint, const size_t *, const size_t *, size_t, size_t, const void *, cl_uint,            \
       const cl_event *, cl_event *))                                                                                  \
    F(cl_int, clEnqueueReadImage,                                                                                      \
      (cl_queue, cl_memory, cl_uint, const size_t *, const size_t *, size_t, size_t, void *, cl_uint,                  \
       const cl_event *, cl_event *))                                                                                  \
    F(cl_program, clCreateProgramWithSource, (cl_context, cl_uint, const char **, const size_t *, cl_int *))           \
    F(cl_program, clCreateProgramWithBinary,                                                                           \
      (cl_context, cl_uint, const cl_device *, const size_t *, const unsigned char **, cl_int *, cl_int *))            \
    F(cl_int, clBuildProgram,                                                                                          \
      (cl_program, cl_uint, const cl_device *, const char *, void (*)(cl_program, void *), void *))                    \
    F(cl_int, clGetProgramInfo, (cl_program, cl_uint, size_t, void *, size_t *))                                       \
    F(cl_int, clGetProgramBuildInfo, (cl_program, cl_device, cl_uint, size_t, void *, size_t *))                       \
    F(cl_int, clReleaseProgram, (cl_program))                                                                          \
    F(cl_kernel, clCreateKernel, (cl_program, const char *, cl_int *))                                                 \
    F(cl_int, clReleaseKernel, (cl_kernel))                                                                            \
    F(cl_int, clSetKernelArg, (cl_kernel, cl_uint, size_t, const void *))                                              \
    F(cl_int, clEnqueueNDRangeKernel,                                                                                  \
      (cl_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *, cl_uint, const cl_event *,        \
       cl_event *))                                                                                                    \
    F(cl_int, clWaitForEvents, (cl_uint, const cl_event *))                                                            \
    F(cl_int, clGetEventProfilingInfo, (cl_event, cl_uint, size_t, void *, size_t *))                                  \
    F(cl_int, clReleaseEvent, (cl_event))

/* The part of cl_khr_command_buffer that the library uses, after Khronos' specification of versions 0.9.0 to 0.9.8. */
#define KHR_FUNCTIONS(F)                                                                                               \
    F(void *, clCreateCommandBufferKHR, (cl_uint, const cl_queue *, const cl_bits *, cl_int *))                        \
    F(cl_int, clCommandNDRangeKernelKHR,                                                                               \
      (void *, cl_queue, const cl_bits *, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *, cl_uint, \
       const cl_uint *, cl_uint *, void **))                                                                           \
    F(cl_int, clFinalizeCommandBufferKHR, (void *))                                                                    \
    F(cl_int, clEnqueueCommandBufferKHR, (cl_uint, cl_queue *, void *, cl_uint, const cl_event *, cl_event *))         \
    F(cl_int, clReleaseCommandBufferKHR, (void *))

/* The part of cl_qcom_recordable_queues, after cl_ext_qcom.h of Qualcomm's SDK for Adreno. */
#define QCOM_FUNCTIONS(F)                                                                                              \
    F(void *, clNewRecordingQCOM, (cl_queue, cl_int *))                                                                \
    F(cl_int, clEndRecordingQCOM, (void *))                                                                            \
    F(cl_int, clEnqueueRecordingQCOM,                                                                                  \
      (cl_queue, void *, size_t, const void *, size_t, const void *, size_t, const void *, size_t, const void *,       \
       cl_uint, const cl_event *, cl_event *))                                                                         \
    F(cl_int, clReleaseRecordingQCOM, (void *))

#define OPENCL_MEMBER(result, name, parameters) result(*name) parameters;
typedef struct opencl {
    OPENCL_FUNCTIONS(OPENCL_MEMBER)
} opencl;
typedef struct khr_functions {
    KHR_FUNCTIONS(OPENCL_MEMBER)
} khr_functions;
typedef struct qcom_functions {
    QCOM_FUNCTIONS(OPENCL_MEMBER)
} qcom_functions;
#undef OPENCL_MEMBER

/* The functions, after `opencl_open` has ended well. */
extern opencl cl;

/* Finds the OpenCL library, once in a process. `path` may be NULL. */
smartmem_status opencl_open(const char *path);

/* SMARTMEM_NO_MEMORY or SMARTMEM_DEVICE_ERROR, with a text that begins with `what`. */
smartmem_status opencl_failed(cl_int code, const char *what);

#endif
