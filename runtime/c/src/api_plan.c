/* The public functions about the library and plans: each checks its arguments, and holds the object of a handle while it
 * works. */

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "cache.h"
#include "choice.h"
#include "elements.h"
#include "extents.h"
#include "handles.h"
#include "opening.h"

/* --- the library --- */

smartmem_status smartmem_devices(smartmem_device *devices, size_t capacity, size_t *count) {
    Device *found;
    size_t here;
    if (count == NULL || (devices == NULL && capacity))
        return null_argument(count == NULL ? "count" : "devices");
    TRY(opencl_open(NULL));
    TRY(devices_find(NULL, &found, &here));
    for (size_t i = 0; i < here && i < capacity; ++i)
        devices[i] = found[i].names;
    free(found);
    *count = here;
    return SMARTMEM_OK;
}

/* --- plans --- */

static smartmem_status plan_options(const smartmem_plan_options *given, smartmem_plan_options *options,
                                    smartmem_plan *plan) {
    *options = (smartmem_plan_options)SMARTMEM_PLAN_OPTIONS;
    if (plan == NULL)
        return null_argument("plan");
    plan->id = 0;
    if (given != NULL) {
        /* programs that know less of the options leave the rest as it is */
        size_t known = given->struct_size < sizeof *options ? given->struct_size : sizeof *options;
        TRY(check_struct(given->struct_size, offsetof(smartmem_plan_options, self_test)));
        memcpy(options, given, known);
    }
    return cache_for_driver(options);
}

static smartmem_status give_handle(Plan *made, smartmem_plan *opened) {
    opened->id = handle_new(HANDLE_PLAN, made);
    if (opened->id)
        return SMARTMEM_OK;
    plan_release(made);
    return fail(SMARTMEM_NO_MEMORY, "there are too many handles");
}

static smartmem_status open_plan(plan_file *file, const smartmem_plan_options *options, smartmem_plan *opened) {
    Plan *made;
    TRY(plan_open(&made, file, options));
    return give_handle(made, opened);
}

smartmem_status smartmem_plan_open(const char *path, const smartmem_plan_options *options, smartmem_plan *plan) {
    smartmem_plan_options known;
    plan_file file;
    TRY(plan_options(options, &known, plan));
    if (path == NULL)
        return null_argument("path");
    TRY(plan_file_open(&file, path));
    return open_plan(&file, &known, plan);
}

smartmem_status smartmem_plan_open_memory(const void *data, size_t bytes, const smartmem_plan_options *options,
                                          smartmem_plan *plan) {
    smartmem_plan_options known;
    plan_file file;
    TRY(plan_options(options, &known, plan));
    if (data == NULL)
        return null_argument("data");
    TRY(plan_file_open_memory(&file, data, bytes));
    return open_plan(&file, &known, plan);
}

smartmem_status smartmem_plan_open_descriptor(int descriptor, uint64_t offset, uint64_t bytes,
                                              const smartmem_plan_options *options, smartmem_plan *plan) {
    smartmem_plan_options known;
    plan_file file;
    TRY(plan_options(options, &known, plan));
    TRY(plan_file_open_descriptor(&file, descriptor, offset, bytes));
    return open_plan(&file, &known, plan);
}

/* Where the bytes of several plans are: in files, or in memory. */
typedef struct plan_places {
    const char *const *paths;
    const void *const *data;
    const size_t *bytes;
    size_t count;
} plan_places;

static smartmem_status read_one(const plan_places *places, size_t number, Plan **read) {
    plan_file file;
    if (places->paths != NULL ? places->paths[number] == NULL : places->data[number] == NULL)
        return null_argument("it");
    smartmem_status status = places->paths != NULL
                                 ? plan_file_open(&file, places->paths[number])
                                 : plan_file_open_memory(&file, places->data[number], places->bytes[number]);
    return status == SMARTMEM_OK ? plan_read(read, &file) : status;
}

static smartmem_status read_at(const plan_places *places, size_t number, Plan **read) {
    char error[ERROR_TEXT];
    smartmem_status status = read_one(places, number, read);
    if (status == SMARTMEM_OK)
        return status;
    snprintf(error, sizeof error, "%s", smartmem_last_error());
    return fail(status, "plan %zu: %s", number + 1, error);
}

static smartmem_status open_chosen(const plan_places *places, const smartmem_plan_options *options,
                                   smartmem_plan *opened) {
    Plan *plans[MOST_PLANS];
    size_t read = 0, chosen = SIZE_MAX;
    smartmem_status status = SMARTMEM_OK;
    if (!places->count || places->count > MOST_PLANS)
        return fail(SMARTMEM_BAD_ARGUMENT, "count is %zu, and must be 1 to %d", places->count, MOST_PLANS);
    while (status == SMARTMEM_OK && read < places->count) {
        status = read_at(places, read, plans + read);
        read += status == SMARTMEM_OK;
    }
    if (status == SMARTMEM_OK)
        status = choice_open(plans, read, options, &chosen);
    for (size_t i = 0; i < read; ++i)
        if (status != SMARTMEM_OK || i != chosen)
            plan_release(plans[i]);
    return status == SMARTMEM_OK ? give_handle(plans[chosen], opened) : status;
}

smartmem_status smartmem_plan_open_fitting(const char *const *paths, size_t count,
                                           const smartmem_plan_options *options, smartmem_plan *plan) {
    smartmem_plan_options known;
    TRY(plan_options(options, &known, plan));
    if (paths == NULL)
        return null_argument("paths");
    return open_chosen(&(plan_places){.paths = paths, .count = count}, &known, plan);
}

smartmem_status smartmem_plan_open_fitting_memory(const void *const *data, const size_t *bytes, size_t count,
                                                  const smartmem_plan_options *options, smartmem_plan *plan) {
    smartmem_plan_options known;
    TRY(plan_options(options, &known, plan));
    if (data == NULL || bytes == NULL)
        return null_argument(data == NULL ? "data" : "bytes");
    return open_chosen(&(plan_places){.data = data, .bytes = bytes, .count = count}, &known, plan);
}

smartmem_status smartmem_plan_close(smartmem_plan handle) {
    Plan *plan = handle_take(HANDLE_PLAN, handle.id);
    if (plan == NULL)
        return bad_handle("plan");
    plan_release(plan);
    return SMARTMEM_OK;
}

smartmem_status smartmem_plan_get_info(smartmem_plan handle, smartmem_plan_info *info) {
    if (info == NULL)
        return null_argument("info");
    TRY(check_struct(info->struct_size, offsetof(smartmem_plan_info, target)));
    const Plan *plan = handle_use(HANDLE_PLAN, handle.id);
    if (plan == NULL)
        return bad_handle("plan");
    smartmem_plan_info found = {
        .struct_size = info->struct_size,
        .model = text_of(plan->index.model),
        .level = text_of(plan->index.level),
        .dtype = text_of(plan->index.dtype),
        .device = plan->device.names.name,
        .driver = plan->device.names.driver,
        .inputs = plan->index.inputs_count,
        .outputs = plan->outputs_count,
        .launches = plan->index.launches_count,
        .dimensions = plan->index.dimensions_count,
        .constant_bytes = plan->sizes.constants,
        .session_bytes = plan->sizes.session,
        .intermediate_bytes = plan->sizes.intermediates,
        .target = text_of(plan->index.target),
    };
    /* programs that know less of the information have no room for the rest */
    memcpy(info, &found, info->struct_size < sizeof found ? info->struct_size : sizeof found);
    handle_done(handle.id);
    return SMARTMEM_OK;
}

smartmem_status smartmem_plan_get_self_test(smartmem_plan handle, const char **report) {
    if (report == NULL)
        return null_argument("report");
    const Plan *plan = handle_use(HANDLE_PLAN, handle.id);
    if (plan == NULL)
        return bad_handle("plan");
    *report = text_of(plan->self_test);
    handle_done(handle.id);
    return SMARTMEM_OK;
}

static void describe_axis(const Plan *plan, smartmem_tensor_info *info, size_t axis, int64_t extent) {
    info->shape[axis] = extent_at(extent, plan->greatest);
    info->dimension[axis] = extent_dimension(&plan->index, extent);
    if (extent < 0)
        info->varies |= 1u << axis;
}

static void describe(const Plan *plan, const plan_tensor *tensor, const int64_t *extents, size_t rank,
                     smartmem_tensor_info *info) {
    uint64_t bytes = element_bytes(tensor->element);
    *info = (smartmem_tensor_info){.struct_size = info->struct_size,
                                   .name = text_of(tensor->name),
                                   .element = (smartmem_element)tensor->element,
                                   .rank = (uint32_t)rank};
    for (size_t axis = 0; axis < rank; ++axis) {
        describe_axis(plan, info, axis, extents[axis]);
        bytes *= (uint64_t)info->shape[axis];
    }
    info->bytes = bytes;
}

static smartmem_status get_tensor(smartmem_plan handle, uint32_t number, bool input, smartmem_tensor_info *info) {
    if (info == NULL)
        return null_argument("info");
    TRY(check_struct(info->struct_size, sizeof *info));
    const Plan *plan = handle_use(HANDLE_PLAN, handle.id);
    if (plan == NULL)
        return bad_handle("plan");
    smartmem_status status = SMARTMEM_OK;
    uint32_t count = input ? plan->index.inputs_count : plan->outputs_count;
    if (number >= count) {
        status = fail(SMARTMEM_BAD_ARGUMENT, "there is no %s %u; the plan has %u", input ? "input" : "output",
                      (unsigned)number, (unsigned)count);
    } else if (input) {
        const plan_tensor *tensor = plan_input(plan, number);
        describe(plan, tensor, tensor->shape, tensor->shape_count, info);
    } else {
        const plan_tensor *tensor = plan_output(plan, number);
        const int64_t *extents;
        size_t rank;
        plan_shown(tensor, &extents, &rank);
        describe(plan, tensor, extents, rank, info);
        for (size_t i = 0; i < plan->index.counts_count; ++i)
            if (plan->index.counts[i].output == plan->index.outputs[plan->outputs[number]])
                info->varies |= 1u << plan->index.counts[i].axis;
    }
    handle_done(handle.id);
    return status;
}

smartmem_status smartmem_plan_get_input(smartmem_plan plan, uint32_t number, smartmem_tensor_info *info) {
    return get_tensor(plan, number, true, info);
}

smartmem_status smartmem_plan_get_output(smartmem_plan plan, uint32_t number, smartmem_tensor_info *info) {
    return get_tensor(plan, number, false, info);
}

smartmem_status smartmem_plan_get_dimension(smartmem_plan handle, uint32_t number, smartmem_dimension_info *info) {
    if (info == NULL)
        return null_argument("info");
    TRY(check_struct(info->struct_size, sizeof *info));
    const Plan *plan = handle_use(HANDLE_PLAN, handle.id);
    if (plan == NULL)
        return bad_handle("plan");
    smartmem_status status = SMARTMEM_OK;
    if (number < plan->index.dimensions_count) {
        const smartmem_format_Dimension *one = plan->index.dimensions + number;
        *info = (smartmem_dimension_info){info->struct_size, text_of(one->name), one->low, one->high};
    } else {
        status = fail(SMARTMEM_BAD_ARGUMENT, "there is no dimension %u; the plan has %u", (unsigned)number,
                      (unsigned)plan->index.dimensions_count);
    }
    handle_done(handle.id);
    return status;
}
