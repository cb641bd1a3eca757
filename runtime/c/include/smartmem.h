/* libsmartmem: runs plans of smartmem_rules on OpenCL devices.
 *
 * A *plan* is a plan file on a device: its programs are built and its constants are in place. A *session* of a plan is
 * the memory and the queue of one run at a time; several sessions of one plan, and several plans, run side by side.
 *
 *     smartmem_plan plan;
 *     smartmem_session session;
 *     smartmem_output result;
 *     smartmem_plan_open("swin.plan", NULL, &plan);
 *     smartmem_session_open(plan, NULL, &session);
 *     smartmem_set_input(session, "image", pixels, sizeof pixels, NULL, 0);
 *     smartmem_run(session);
 *     smartmem_get_output(session, "logits", &result);
 *
 * Every function gives a status; `smartmem_last_error` says in words what was wrong in the calling thread. Handles are
 * numbers: one that was closed, or was never given out, is an error and never a crash. All functions may be called from
 * any thread. While a session runs, calls that would change it give SMARTMEM_BUSY. Drivers do not survive fork(): open
 * plans in the process that runs them.
 *
 * The library needs the C library and, when a plan is opened, an OpenCL library, which it finds by itself: the one that
 * the options or the variable SMARTMEM_OPENCL name, else libOpenCL, else the places where phones keep theirs.
 */
#ifndef SMARTMEM_H
#define SMARTMEM_H

#include <stddef.h>
#include <stdint.h>

#define SMARTMEM_VERSION "1.0.0"

/** Of this header. A library with another major version of its ABI cannot be used with it. */
#define SMARTMEM_ABI 1

/** The greatest rank of an input or output. */
#define SMARTMEM_MAX_RANK 16

#if defined(_WIN32)
#define SMARTMEM_API
#else
#define SMARTMEM_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum smartmem_status {
    SMARTMEM_OK = 0,
    SMARTMEM_BAD_ARGUMENT = 1, /**< null where that is not allowed, or out of range */
    SMARTMEM_BAD_HANDLE = 2,   /**< closed, or never given out */
    SMARTMEM_BAD_NAME = 3,     /**< no input or output has this name */
    SMARTMEM_BAD_SIZE = 4,     /**< a shape or a number of bytes is wrong */
    SMARTMEM_NO_INPUT = 5,     /**< an input was not set */
    SMARTMEM_NO_RESULT = 6,    /**< there was no run that ended well */
    SMARTMEM_BAD_FILE = 7,     /**< a file cannot be read */
    SMARTMEM_BAD_PLAN = 8,     /**< no plan, damaged, or of another version */
    SMARTMEM_NO_DEVICE = 9,    /**< no OpenCL library, or no such device */
    SMARTMEM_UNSUITABLE = 10,  /**< the device cannot run this plan */
    SMARTMEM_BAD_PROGRAM = 11, /**< the driver's compiler refuses a kernel */
    SMARTMEM_NO_MEMORY = 12,
    SMARTMEM_DEVICE_ERROR = 13, /**< the driver refuses a call */
    SMARTMEM_BUSY = 14,         /**< the session runs */
    SMARTMEM_CANCELLED = 15,
    SMARTMEM_WRONG_KERNEL = 16, /**< the self-test found that the device computes a kernel wrongly */
    SMARTMEM_UNENDED_LOOP = 17  /**< these inputs have a loop take more steps than it was unrolled for */
} smartmem_status;

/** Element types. 4-bit and smaller types take a byte for each element, in its lowest bits; `bool` is 0 or 1. */
typedef enum smartmem_element {
    SMARTMEM_FLOAT16 = 1,
    SMARTMEM_FLOAT32 = 2,
    SMARTMEM_FLOAT64 = 3,
    SMARTMEM_BFLOAT16 = 4,
    SMARTMEM_INT8 = 5,
    SMARTMEM_INT16 = 6,
    SMARTMEM_INT32 = 7,
    SMARTMEM_INT64 = 8,
    SMARTMEM_UINT8 = 9,
    SMARTMEM_UINT16 = 10,
    SMARTMEM_UINT32 = 11,
    SMARTMEM_UINT64 = 12,
    SMARTMEM_BOOL = 13,
    SMARTMEM_INT4 = 14,
    SMARTMEM_UINT4 = 15,
    SMARTMEM_INT2 = 16,
    SMARTMEM_UINT2 = 17,
    SMARTMEM_FLOAT8_E4M3FN = 18,
    SMARTMEM_FLOAT8_E4M3FNUZ = 19,
    SMARTMEM_FLOAT8_E5M2 = 20,
    SMARTMEM_FLOAT8_E5M2FNUZ = 21,
    SMARTMEM_FLOAT8_E8M0FNU = 22,
    SMARTMEM_FLOAT4_E2M1FN = 23
} smartmem_element;

typedef struct smartmem_plan {
    uint64_t id;
} smartmem_plan;

typedef struct smartmem_session {
    uint64_t id;
} smartmem_session;

/** How a plan is opened. Initialise with SMARTMEM_PLAN_OPTIONS, so that later versions can add fields. */
typedef struct smartmem_plan_options {
    size_t struct_size;
    /** NULL: the device that the plan was made for if it is here, else a GPU if there is one; or `P:D`, the numbers of
     * platform and device, or a part of the device's or the platform's name. */
    const char *device;
    /** A folder for compiled programs, NULL: none. It may be that of the Python package, `~/.cache/smartmem-rules`. */
    const char *cache_folder;
    /** The path of the OpenCL library; NULL: it is searched for. It counts in the first call that opens one. */
    const char *opencl_library;
    /** Not 0: the checksums of the constants are not compared. They are read as they are used then, which is faster. */
    int32_t trust_constants;
    /** Called with how many of the distinct kernel texts are built, by one thread at a time; NULL: nothing is. */
    void (*progress)(uint32_t built, uint32_t all, void *user);
    void *user;
    /** Of plans with questions to their kernels. 0: these are asked when the plan is first opened on a device and driver,
     * and the findings are kept in `cache_folder`; above 0: they are asked again; below 0: never. */
    int32_t self_test;
    /** In the place of `cache_folder` the descriptor of an open folder, which stays the caller's and counts until the call
     * returns; NULL: none. */
    const int *cache_descriptor;
} smartmem_plan_options;

#define SMARTMEM_PLAN_OPTIONS {sizeof(smartmem_plan_options), 0, 0, 0, 0, 0, 0, 0, 0}

/** How a session is opened. Initialise with SMARTMEM_SESSION_OPTIONS. */
typedef struct smartmem_session_options {
    size_t struct_size;
    /** Memory of the application for intermediate results in buffers, on devices that compute in the host's memory; at
     * least `intermediate_bytes` of smartmem_plan_info, until the session is closed. It begins at a multiple of 128
     * bytes, or of what the device asks for if that is more: other memory gives SMARTMEM_BAD_ARGUMENT. NULL: the
     * driver allocates it. */
    void *memory;
    size_t memory_bytes;
    /** Not below 0: where the device offers it (cl_khr_command_buffer, cl_qcom_recordable_queues), the second run with the
     * same extents records the launches, and those after it replay them with one call. Runs of `smartmem_run_async` do
     * not, because they can be cancelled between two launches. Below 0: nothing is recorded. */
    int32_t record;
} smartmem_session_options;

#define SMARTMEM_SESSION_OPTIONS {sizeof(smartmem_session_options), 0, 0, 0}

/** What a plan is. Set `struct_size` before the call. Texts live as long as the plan. */
typedef struct smartmem_plan_info {
    size_t struct_size;
    const char *model;  /**< the name of the ONNX model */
    const char *level;  /**< of optimization */
    const char *dtype;  /**< in which floats are stored */
    const char *device; /**< that runs it */
    const char *driver; /**< of the device, with its version */
    uint32_t inputs;
    uint32_t outputs;
    uint32_t launches;
    uint32_t dimensions;        /**< that are open */
    uint64_t constant_bytes;    /**< in device memory, shared by all sessions */
    uint64_t session_bytes;     /**< of device memory that each session takes */
    uint64_t intermediate_bytes; /**< the part of it for which `memory` of smartmem_session_options may stand in */
    const char *target;          /**< the profile of devices that the plan was made for */
} smartmem_plan_info;

/** An input or output. Set `struct_size` before the call. */
typedef struct smartmem_tensor_info {
    size_t struct_size;
    const char *name; /**< lives as long as the plan */
    smartmem_element element;
    uint32_t rank;
    int64_t shape[SMARTMEM_MAX_RANK]; /**< the extents, at most */
    uint32_t varies;                  /**< bit i: the extent of axis i can be less, by open dimensions or by data */
    int32_t dimension[SMARTMEM_MAX_RANK]; /**< of an input: the open dimension that an axis is, else -1 */
    uint64_t bytes;                   /**< of the elements at these extents */
} smartmem_tensor_info;

/** An open dimension. Set `struct_size` before the call. */
typedef struct smartmem_dimension_info {
    size_t struct_size;
    const char *name; /**< lives as long as the plan */
    int64_t low;
    int64_t high;
} smartmem_dimension_info;

/** A result: `data` lives until the session's next run, or until it is closed. */
typedef struct smartmem_output {
    const void *data;
    uint64_t bytes;
    smartmem_element element;
    uint32_t rank;
    int64_t shape[SMARTMEM_MAX_RANK];
} smartmem_output;

/** The time of a launch on the device. */
typedef struct smartmem_launch_time {
    const char *name; /**< lives as long as the plan */
    double milliseconds;
} smartmem_launch_time;

/** An OpenCL device. */
typedef struct smartmem_device {
    char place[16]; /**< `P:D` */
    char name[128];
    char platform[128];
    char driver[64];
    char version[128];
} smartmem_device;

/** Called in a thread of the library when a run ends. It may start the next run, and must not close the session.
 * `error` is empty if the run ended well. */
typedef void (*smartmem_callback)(smartmem_session session, smartmem_status status, const char *error, void *user);

/* --- the library --- */

/** The ABI of the library: compare it with SMARTMEM_ABI. */
SMARTMEM_API uint32_t smartmem_abi(void);
/** The version of the library, such as "1.0.0". */
SMARTMEM_API const char *smartmem_version(void);
/** What a status means, in a few words. */
SMARTMEM_API const char *smartmem_status_text(smartmem_status status);
/** What was wrong with the calling thread's last call that failed; lives until its next one. Never NULL. */
SMARTMEM_API const char *smartmem_last_error(void);
/** The devices of this computer.
 *
 * @param devices has room for `capacity` of them; may be NULL if that is 0
 * @param count gets how many there are
 */
SMARTMEM_API smartmem_status smartmem_devices(smartmem_device *devices, size_t capacity, size_t *count);

/* --- plans --- */

/** Maps a plan's file into memory, checks it, builds its programs and puts its constants on the device. */
SMARTMEM_API smartmem_status smartmem_plan_open(const char *path, const smartmem_plan_options *options,
                                                smartmem_plan *plan);
/** The same for a plan in memory of the application, which stays as it is until the plan is closed. `data` may begin
 * anywhere; constants are used in place where it begins with a page, else they are copied. */
SMARTMEM_API smartmem_status smartmem_plan_open_memory(const void *data, size_t bytes,
                                                       const smartmem_plan_options *options, smartmem_plan *plan);
/** The same for a part of an open file, such as an asset of an Android package. The descriptor stays the caller's.
 *
 * @param bytes 0: to the end of the file
 */
SMARTMEM_API smartmem_status smartmem_plan_open_descriptor(int descriptor, uint64_t offset, uint64_t bytes,
                                                           const smartmem_plan_options *options, smartmem_plan *plan);
/** Opens the one of several plans of a model, made for several profiles of devices, that is for the device: of those that
 * it can run the first one whose profile names the device, else the first one whose profile stands in for its type. Where
 * there is none, the status is SMARTMEM_UNSUITABLE and the error says why for each plan; nothing was built then. A plan
 * that cannot be read is an error, whichever would be chosen. `smartmem_plan_open` opens a plan on any device that can run
 * it, whatever it was made for.
 *
 * @param paths as many as `count`, 1 to 64
 */
SMARTMEM_API smartmem_status smartmem_plan_open_fitting(const char *const *paths, size_t count,
                                                        const smartmem_plan_options *options, smartmem_plan *plan);
/** The same for plans in memory of the application: of each where it begins, and its bytes. */
SMARTMEM_API smartmem_status smartmem_plan_open_fitting_memory(const void *const *data, const size_t *bytes,
                                                               size_t count, const smartmem_plan_options *options,
                                                               smartmem_plan *plan);
/** Closes a plan. What it holds goes when its last session is closed. */
SMARTMEM_API smartmem_status smartmem_plan_close(smartmem_plan plan);
SMARTMEM_API smartmem_status smartmem_plan_get_info(smartmem_plan plan, smartmem_plan_info *info);
SMARTMEM_API smartmem_status smartmem_plan_get_input(smartmem_plan plan, uint32_t number, smartmem_tensor_info *info);
SMARTMEM_API smartmem_status smartmem_plan_get_output(smartmem_plan plan, uint32_t number, smartmem_tensor_info *info);
SMARTMEM_API smartmem_status smartmem_plan_get_dimension(smartmem_plan plan, uint32_t number,
                                                         smartmem_dimension_info *info);

/** What the self-test found: a line for each kernel that the device computes wrongly and that another one replaces, with
 * the device, its driver, the kernel, its launches and sizes, and the first element that differs. Empty where all kernels
 * are right, or none was asked. A kernel that nothing replaces is an error of opening the plan.
 *
 * @param report lives as long as the plan
 */
SMARTMEM_API smartmem_status smartmem_plan_get_self_test(smartmem_plan plan, const char **report);

/* --- sessions --- */

SMARTMEM_API smartmem_status smartmem_session_open(smartmem_plan plan, const smartmem_session_options *options,
                                                   smartmem_session *session);
/** Cancels the run of a session if there is one, waits for its end, and closes the session. */
SMARTMEM_API smartmem_status smartmem_session_close(smartmem_session session);
/** Names the memory from which the runs that follow read an input. It stays the application's, is read in each run, and
 * may begin anywhere: elements need not be aligned.
 *
 * @param bytes of the elements
 * @param shape NULL if the input has no open dimension
 */
SMARTMEM_API smartmem_status smartmem_set_input(smartmem_session session, const char *name, const void *data,
                                                size_t bytes, const int64_t *shape, size_t rank);
/** Names memory of the application into which the runs that follow write an output; it may begin anywhere. NULL: memory
 * of the session.
 *
 * @param bytes at least those of the output at its greatest extents
 */
SMARTMEM_API smartmem_status smartmem_set_output(smartmem_session session, const char *name, void *data, size_t bytes);
/** One inference, from the inputs to the outputs. */
SMARTMEM_API smartmem_status smartmem_run(smartmem_session session);
/** Starts one inference and returns. The callback may be NULL. */
SMARTMEM_API smartmem_status smartmem_run_async(smartmem_session session, smartmem_callback callback, void *user);
/** Waits for the end of the run that `smartmem_run_async` started, and of its callback, and gives its status. */
SMARTMEM_API smartmem_status smartmem_wait(smartmem_session session);
/** Asks the run that `smartmem_run_async` started to end before its next launch. The session can run again after. */
SMARTMEM_API smartmem_status smartmem_cancel(smartmem_session session);
/** An output of the last run. */
SMARTMEM_API smartmem_status smartmem_get_output(smartmem_session session, const char *name, smartmem_output *output);
/** Runs once more with the inputs that are set, and gives the time of each launch in the order of execution.
 *
 * @param times has room for `capacity` launches; what is more is left out
 * @param count gets how many there are
 */
SMARTMEM_API smartmem_status smartmem_profile(smartmem_session session, smartmem_launch_time *times, size_t capacity,
                                              size_t *count);

#ifdef __cplusplus
}
#endif

#endif
