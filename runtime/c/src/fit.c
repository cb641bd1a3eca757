#include "fit.h"

#include <string.h>

static const char *const AGAIN = "optimize the model for it";

static bool is_of_type(const Device *device, const char *type) {
    if (strcmp(type, "gpu") == 0)
        return (device->kind & CL_DEVICE_TYPE_GPU) != 0;
    if (strcmp(type, "accelerator") == 0)
        return (device->kind & CL_DEVICE_TYPE_ACCELERATOR) != 0;
    return strcmp(type, "cpu") == 0 && device->host_memory;
}

fit_kind fit_by_name(const plan_index *index, const Device *device) {
    for (size_t i = 0; i < index->demands.names_count; ++i)
        if (device_is_called(device, text_of(index->demands.names[i])))
            return FIT_NAME;
    for (size_t i = 0; i < index->demands.types_count; ++i)
        if (is_of_type(device, text_of(index->demands.types[i])))
            return FIT_TYPE;
    return FIT_NONE;
}

/* A capability of a plan, of which a damaged or older one may have fewer numbers. */
static bool is_capable(const Device *device, const uint32_t *wanted, size_t count) {
    uint32_t major = count > 0 ? wanted[0] : 0, minor = count > 1 ? wanted[1] : 0;
    return device->capability[0] != major ? device->capability[0] > major : device->capability[1] >= minor;
}

static smartmem_status check_extensions(const memory_setting *setting) {
    const smartmem_format_Demands *demands = &setting->index->demands;
    const Device *device = setting->device;
    if (!is_capable(device, demands->capability, demands->capability_count))
        return fail(SMARTMEM_UNSUITABLE,
                    "the plan has instructions of NVIDIA's compute capability %u.%u, which %s does not have; %s",
                    (unsigned)demands->capability[0],
                    demands->capability_count > 1 ? (unsigned)demands->capability[1] : 0u, device->names.name, AGAIN);
    for (size_t i = 0; i < demands->extensions_count; ++i)
        if (!device_has_extension(device, text_of(demands->extensions[i])))
            return fail(SMARTMEM_UNSUITABLE, "the plan needs the extension %s, which %s does not have; %s",
                        text_of(demands->extensions[i]), device->names.name, AGAIN);
    return SMARTMEM_OK;
}

/* Bytes of local memory that a kernel may take. */
static uint64_t most_local_memory(const memory_setting *setting) {
    const smartmem_format_Demands *demands = &setting->index->demands;
    uint64_t said = setting->device->local_memory;
    bool more = demands->arrays > said && setting->device->capability[0] &&
                is_capable(setting->device, demands->arrays_capability, demands->arrays_capability_count);
    return more ? demands->arrays : said;
}

static bool asks_for_atomics(const plan_launch *launch) {
    for (size_t i = 0; i < launch->options_count; ++i)
        if (strcmp(text_of(launch->options[i]), "-cl-std=CL3.0") == 0)
            return true;
    return false;
}

static smartmem_status check_launch(const memory_setting *setting, const plan_launch *launch) {
    const Device *device = setting->device;
    uint64_t items = 1, local = most_local_memory(setting);
    for (size_t axis = 0; axis < launch->local_size_count && items <= device->work_group; ++axis)
        items *= launch->local_size[axis];
    if (items > device->work_group)
        return fail(SMARTMEM_UNSUITABLE,
                    "the kernel %s has work-groups of %llu work-items, and %s takes at most %llu; %s",
                    text_of(launch->name), (unsigned long long)items, device->names.name,
                    (unsigned long long)device->work_group, AGAIN);
    if (launch->local_bytes > local)
        return fail(SMARTMEM_UNSUITABLE, "the kernel %s takes %llu bytes of local memory, and %s has %llu; %s",
                    text_of(launch->name), (unsigned long long)launch->local_bytes, device->names.name,
                    (unsigned long long)local, AGAIN);
    /* work-groups that take tasks in order may wait everywhere; how they do so the compiler has to know */
    if (launch->ordered && !(launch->has_waiting ? !asks_for_atomics(launch) || device->orders_atomics
                                                 : device->runs_ordered))
        return fail(SMARTMEM_UNSUITABLE,
                    "the plan has launches whose work-groups wait for each other, which %s is not known to run; %s",
                    device->names.name, AGAIN);
    return SMARTMEM_OK;
}

smartmem_status fit_check(const memory_setting *setting) {
    TRY(check_extensions(setting));
    for (size_t i = 0; i < setting->index->launches_count; ++i)
        TRY(check_launch(setting, setting->index->launches + i));
    return memory_check(setting);
}
