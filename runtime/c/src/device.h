/* OpenCL devices: what they are, and what plans say about faults of their drivers. */
#ifndef SMARTMEM_DEVICE_H
#define SMARTMEM_DEVICE_H

#include <stdbool.h>

#include "index.h"
#include "opencl.h"

typedef struct Device {
    cl_platform platform;
    cl_device handle;
    smartmem_device names;
    cl_bits kind;
    bool images;
    size_t image_width, image_height; /* texels */
    uint64_t largest_allocation;      /* bytes */
    uint64_t work_group;              /* work-items at most */
    uint64_t local_memory;            /* bytes that a work-group may take */
    uint32_t capability[2];           /* NVIDIA's compute capability, 0.0 elsewhere */
    size_t alignment;                 /* bytes of which parts of a buffer begin at multiples */
    bool host_memory;                 /* it computes in the host's memory */
    bool orders_atomics;              /* it has atomic operations that order memory */
    bool runs_ordered;                /* work-groups may wait for each other */
} Device;

/* The workarounds of a plan; NULL stands for no plan. */
typedef const plan_index *device_clauses;

/* The devices of all platforms.
 *
 * @param found gets memory that the caller frees
 */
smartmem_status devices_find(device_clauses clauses, Device **found, size_t *count);

/* The device of a name (see smartmem_plan_options); `recorded` is that of the plan. */
smartmem_status device_choose(device_clauses clauses, const char *name, const char *recorded, Device *chosen);

/* Whether the device has an extension of OpenCL. */
bool device_has_extension(const Device *device, const char *name);

/* Whether a regular expression is found in `PLATFORM DEVICE`. */
bool device_is_called(const Device *device, const char *pattern);

/* The value of the clause number `after`, or of the next one, that concerns a device and has an effect; NULL: none.
 * `after` then is the number behind it. */
const char *device_workaround(device_clauses clauses, const Device *device, const char *effect, size_t *after);
bool device_has_workaround(device_clauses clauses, const Device *device, const char *effect);

#endif
