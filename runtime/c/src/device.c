#define _GNU_SOURCE
#include "device.h"

#include <ctype.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver_pages.h"
#include "processor.h"
#include "workarounds.h"

enum { MOST_PLATFORMS = 32, MOST_DEVICES = 64 };

/* The name of PoCL's platform: the record of a device of another one is not looked into. */
static const char POCL[] = "Portable Computing Language";

/* drivers read their variables when they open their devices */
static pthread_mutex_t environment = PTHREAD_MUTEX_INITIALIZER;

static void trim(char *text) {
    size_t end = strlen(text);
    while (end && isspace((unsigned char)text[end - 1]))
        text[--end] = 0;
    size_t start = strspn(text, " \t\n");
    memmove(text, text + start, end - start + 1);
}

static void device_text(cl_device handle, cl_uint what, char *text, size_t room) {
    char whole[1024] = "";
    if (cl.clGetDeviceInfo(handle, what, sizeof whole - 1, whole, NULL) != CL_SUCCESS)
        whole[0] = 0;
    trim(whole);
    snprintf(text, room, "%.*s", (int)room - 1, whole);
}

static uint64_t device_number(cl_device handle, cl_uint what, size_t bytes) {
    uint64_t value = 0;
    return cl.clGetDeviceInfo(handle, what, bytes, &value, NULL) == CL_SUCCESS ? value : 0;
}

/* Whether atomic operations can order what all work-groups read and write (OpenCL C 3.0). */
static bool orders_atomics(cl_device handle) {
    size_t bytes = 0;
    if (cl.clGetDeviceInfo(handle, CL_DEVICE_OPENCL_C_FEATURES, 0, NULL, &bytes) != CL_SUCCESS || !bytes)
        return false;
    cl_name_version *features = zeros(bytes, 1);
    bool order = false, scope = false;
    if (features != NULL && cl.clGetDeviceInfo(handle, CL_DEVICE_OPENCL_C_FEATURES, bytes, features, NULL) == CL_SUCCESS)
        for (size_t i = 0; i < bytes / sizeof *features; ++i) {
            order = order || strncmp(features[i].name, "__opencl_c_atomic_order_acq_rel", 64) == 0;
            scope = scope || strncmp(features[i].name, "__opencl_c_atomic_scope_device", 64) == 0;
        }
    free(features);
    return order && scope;
}

bool device_has_extension(const Device *device, const char *name) {
    size_t bytes = 0, length = strlen(name);
    if (!length || cl.clGetDeviceInfo(device->handle, CL_DEVICE_EXTENSIONS, 0, NULL, &bytes) != CL_SUCCESS)
        return false;
    char *names = zeros(bytes + 1, 1), *at = names;
    if (names == NULL || cl.clGetDeviceInfo(device->handle, CL_DEVICE_EXTENSIONS, bytes, names, NULL) != CL_SUCCESS)
        at = NULL;
    while (at != NULL && (at = strstr(at, name)) != NULL) {
        if ((at == names || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            break;
        at += length;
    }
    free(names);
    return at != NULL;
}

static void describe(Device *one, const char *platform, unsigned p, unsigned d) {
    cl_device handle = one->handle;
    smartmem_device *names = &one->names;
    snprintf(names->place, sizeof names->place, "%u:%u", p, d);
    snprintf(names->platform, sizeof names->platform, "%s", platform);
    device_text(handle, CL_DEVICE_NAME, names->name, sizeof names->name);
    device_text(handle, CL_DRIVER_VERSION, names->driver, sizeof names->driver);
    device_text(handle, CL_DEVICE_VERSION, names->version, sizeof names->version);
    one->kind = device_number(handle, CL_DEVICE_TYPE, 8);
    one->images = device_number(handle, CL_DEVICE_IMAGE_SUPPORT, 4) != 0;
    one->image_width = one->images ? device_number(handle, CL_DEVICE_IMAGE2D_MAX_WIDTH, sizeof(size_t)) : 0;
    one->image_height = one->images ? device_number(handle, CL_DEVICE_IMAGE2D_MAX_HEIGHT, sizeof(size_t)) : 0;
    one->largest_allocation = device_number(handle, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8);
    one->work_group = device_number(handle, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t));
    one->local_memory = device_number(handle, CL_DEVICE_LOCAL_MEM_SIZE, 8);
    one->alignment = device_number(handle, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 4) / 8;
    one->alignment += one->alignment == 0;
    one->host_memory = (one->kind & CL_DEVICE_TYPE_CPU) != 0 && !(one->kind & CL_DEVICE_TYPE_GPU);
    one->orders_atomics = orders_atomics(handle);
    one->runs_ordered = one->host_memory && one->orders_atomics;
    if (device_has_extension(one, "cl_nv_device_attribute_query")) {
        one->capability[0] = (uint32_t)device_number(handle, CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, 4);
        one->capability[1] = (uint32_t)device_number(handle, CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV, 4);
    }
}

static bool on_all_cores(void) {
    cpu_set_t set;
    long cores = sysconf(_SC_NPROCESSORS_CONF);
    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == cores;
}

/* Whether a plan may set a variable: those of drivers only, whatever a hostile plan says. */
static bool is_of_driver(const char *assignment) {
    static const char *const PREFIXES[] = {"POCL_", "RUSTICL_", "CL_"};
    for (size_t i = 0; i < sizeof PREFIXES / sizeof *PREFIXES; ++i)
        if (strncmp(assignment, PREFIXES[i], strlen(PREFIXES[i])) == 0)
            return true;
    return false;
}

/* Sets the variables that clauses about a platform ask for, unless the user has set them. */
static void set_environment(device_clauses clauses, cl_platform platform, const char *name) {
    char version[256] = "", variable[128];
    unsigned major, minor;
    int read = 0;
    cl.clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof version - 1, version, NULL);
    if (sscanf(version, "OpenCL %u.%u%n", &major, &minor, &read) != 2)
        read = 0; /* behind `OpenCL X.Y` stands the driver's own version, if anything */
    for (size_t i = 0; clauses != NULL && i < clauses->workarounds_count; ++i) {
        const smartmem_format_Workaround *one = clauses->workarounds + i;
        const char *effect = text_of(one->effect), *equals = strchr(text_of(one->value), '=');
        bool always = strcmp(effect, "environment") == 0, cores = strcmp(effect, "environment_on_all_cores") == 0;
        if (equals == NULL || !(always || (cores && on_all_cores())) || !is_of_driver(one->value) ||
            !workaround_concerns(one, name, version + read))
            continue;
        snprintf(variable, sizeof variable, "%.*s", (int)(equals - one->value), one->value);
        setenv(variable, equals + 1, 0);
    }
}

static smartmem_status add_platform(device_clauses clauses, cl_platform platform, unsigned number, Device *found,
                                    size_t *count) {
    cl_device handles[MOST_DEVICES];
    cl_uint here = 0;
    char name[128] = "";
    cl.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
    trim(name);
    set_environment(clauses, platform, name);
    if (cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MOST_DEVICES, handles, &here) != CL_SUCCESS)
        return SMARTMEM_OK; /* a platform without devices is no reason to fail */
    for (cl_uint d = 0; d < here && d < MOST_DEVICES && *count < MOST_DEVICES; ++d) {
        Device *one = found + *count;
        *one = (Device){.platform = platform, .handle = handles[d]};
        describe(one, name, number, d);
        if (strcmp(name, POCL) == 0 && device_has_workaround(clauses, one, "names_processor"))
            processor_name(one->handle);
        ++*count;
    }
    return SMARTMEM_OK;
}

smartmem_status devices_find(device_clauses clauses, Device **found, size_t *count) {
    cl_platform platforms[MOST_PLATFORMS];
    cl_uint here = 0;
    *count = 0;
    *found = zeros(MOST_DEVICES, sizeof **found);
    if (*found == NULL)
        return fail(SMARTMEM_NO_MEMORY, "there is too little memory");
    pthread_mutex_lock(&environment);
    cl_int code = cl.clGetPlatformIDs(MOST_PLATFORMS, platforms, &here);
    for (cl_uint p = 0; code == CL_SUCCESS && p < here && p < MOST_PLATFORMS; ++p)
        add_platform(clauses, platforms[p], p, *found, count);
    driver_pages_after();
    pthread_mutex_unlock(&environment);
    if (*count)
        return SMARTMEM_OK;
    free(*found);
    *found = NULL;
    return fail(SMARTMEM_NO_DEVICE, "this computer has no OpenCL device (OpenCL error %d); install a driver", (int)code);
}

static bool contains(const char *text, const char *part) {
    size_t length = strlen(part);
    for (; *text; ++text)
        if (strncasecmp(text, part, length) == 0)
            return true;
    return false;
}

/* GPUs before accelerators before CPUs before others. */
static int rank_of(const Device *one) {
    return one->kind & CL_DEVICE_TYPE_GPU ? 0 : one->kind & CL_DEVICE_TYPE_ACCELERATOR ? 1 : one->host_memory ? 2 : 3;
}

/* Whether a driver is known to give wrong results, and the user has not allowed all drivers. */
static bool is_refused(device_clauses clauses, const Device *one) {
    const char *allowed = getenv("SMARTMEM_ANY_DRIVER");
    return (allowed == NULL || strcmp(allowed, "on") != 0) && device_has_workaround(clauses, one, "refused");
}

static const Device *by_itself(device_clauses clauses, const Device *found, size_t count, const char *recorded) {
    const Device *best = NULL;
    for (size_t i = 0; i < count; ++i) {
        if (*recorded && strcmp(found[i].names.name, recorded) == 0)
            return found + i;
        if (!is_refused(clauses, found + i) && (best == NULL || rank_of(found + i) < rank_of(best)))
            best = found + i;
    }
    return best == NULL ? found : best;
}

static const Device *by_name(const Device *found, size_t count, const char *name) {
    for (size_t i = 0; i < count; ++i) {
        const smartmem_device *names = &found[i].names;
        if (strcmp(names->place, name) == 0 || contains(names->name, name) || contains(names->platform, name))
            return found + i;
    }
    return NULL;
}

smartmem_status device_choose(device_clauses clauses, const char *name, const char *recorded, Device *chosen) {
    Device *found;
    size_t count;
    TRY(devices_find(clauses, &found, &count));
    bool any = name == NULL || !*name || strcmp(name, "auto") == 0;
    const Device *one = any ? by_itself(clauses, found, count, recorded) : by_name(found, count, name);
    smartmem_status status = SMARTMEM_OK;
    if (one != NULL && is_refused(clauses, one))
        status = fail(SMARTMEM_UNSUITABLE,
                      "the driver %s of %s (%s) is known to give wrong results; install another version, choose "
                      "another device, or set SMARTMEM_ANY_DRIVER=on to use it all the same",
                      one->names.driver, one->names.name, one->names.platform);
    else if (one != NULL)
        *chosen = *one;
    else
        status = fail(SMARTMEM_NO_DEVICE, "there is no device '%s'; the first of %zu here is %s (%s)", name, count,
                      found->names.name, found->names.platform);
    free(found);
    return status;
}

/* What patterns are searched for in: `PLATFORM DEVICE`. */
typedef struct whole_name {
    char text[sizeof((smartmem_device *)0)->platform + sizeof((smartmem_device *)0)->name + 1];
} whole_name;

static whole_name called(const Device *device) {
    whole_name name;
    snprintf(name.text, sizeof name.text, "%s %s", device->names.platform, device->names.name);
    return name;
}

bool device_is_called(const Device *device, const char *pattern) {
    whole_name name = called(device);
    return pattern_found(pattern, name.text);
}

const char *device_workaround(device_clauses clauses, const Device *device, const char *effect, size_t *after) {
    whole_name name = called(device);
    for (; clauses != NULL && *after < clauses->workarounds_count; ++*after) {
        const smartmem_format_Workaround *one = clauses->workarounds + *after;
        if (strcmp(text_of(one->effect), effect) == 0 && workaround_concerns(one, name.text, device->names.driver)) {
            ++*after;
            return text_of(one->value);
        }
    }
    return NULL;
}

bool device_has_workaround(device_clauses clauses, const Device *device, const char *effect) {
    size_t after = 0;
    return device_workaround(clauses, device, effect, &after) != NULL;
}
