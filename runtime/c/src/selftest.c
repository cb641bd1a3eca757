#define _GNU_SOURCE
#include "selftest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "asking.h"
#include "cache.h"

/* What runs in a kernel's place; numbers above SPARE are those of spares. */
enum { ITSELF = 0, UNOPTIMIZED = 1, SPARE = 2, NOTHING = 255, MOST_SPARES = NOTHING - SPARE - 1 };

/* What is known of a plan's kernels: a byte for each probe, that of a kernel's first probe counts. */
typedef struct Findings {
    Plan *plan;
    const build_order *order;
    cl_queue queue;
    uint8_t *chosen; /* by probe */
    char *report;
    size_t report_bytes;
    FILE *stream; /* of the report */
} Findings;

/* One behind the last probe of the kernel whose first one has a number. */
static size_t end_of_kernel(const plan_index *index, size_t first) {
    size_t end = first + 1;
    while (end < index->probes_count && index->probes[end].launches[0] == index->probes[first].launches[0])
        ++end;
    return end;
}

/* The key of what is kept: the digest of the index says which kernels and probes there are. */
static void key_of(const Plan *plan, char key[CACHE_KEY_BYTES]) {
    char text[128] = "self-test 1 ";
    size_t length = strlen(text);
    for (size_t i = 0; i < PLAN_DIGEST_BYTES; ++i)
        length += (size_t)snprintf(text + length, sizeof text - length, "%02x", plan->file.index_digest[i]);
    cache_key(key, text, "", 0, &plan->device);
}

/* Asks all questions of a kernel; `said` is empty where it is right. */
static smartmem_status ask_all(const Findings *found, size_t first, char said[ERROR_TEXT]) {
    const plan_index *index = &found->plan->index;
    said[0] = 0;
    for (size_t i = first; !*said && i < end_of_kernel(index, first); ++i)
        TRY(ask(found->plan, found->queue, index->probes + i, said));
    return SMARTMEM_OK;
}

static smartmem_status put_in_place(const Findings *found, const plan_probe *probe, unsigned choice) {
    const plan_launch *launch = found->plan->index.launches + probe->launches[0];
    const smartmem_format_Spare *spare = choice >= SPARE ? launch->spares + (choice - SPARE) : NULL;
    return programs_replace(&found->plan->programs, found->order, probe->launches, probe->launches_count, spare);
}

static void name_kernel(const Findings *found, const plan_probe *probe, char *name, size_t room) {
    const plan_launch *launch = found->plan->index.launches + probe->launches[0];
    size_t length = (size_t)snprintf(name, room, "the kernel %.200s (launches", text_of(launch->name));
    for (size_t i = 0; i < probe->launches_count && length < room; ++i)
        length += (size_t)snprintf(name + length, room - length, "%s %u", i ? "," : "", (unsigned)probe->launches[i]);
    for (size_t i = 0; i < launch->global_size_count && length < room; ++i)
        length += (size_t)snprintf(name + length, room - length, "%s%lld", i ? " x " : "; global size ",
                                   (long long)launch->global_size[i]);
    for (size_t i = 0; i < launch->local_size_count && length < room; ++i)
        length += (size_t)snprintf(name + length, room - length, "%s%u", i ? " x " : ", local size ",
                                   (unsigned)launch->local_size[i]);
    if (length < room)
        snprintf(name + length, room - length, "%s)", launch->local_size_count ? "" : ", local size of the driver");
}

/* Notes a kernel that is wrong, and what runs in its place. */
static void report_replaced(const Findings *found, const plan_probe *probe, const char *said, unsigned choice) {
    char name[1024], other[32] = "-cl-opt-disable";
    const smartmem_device *device = &found->plan->device.names;
    name_kernel(found, probe, name, sizeof name);
    if (choice >= SPARE)
        snprintf(other, sizeof other, "spare %u", choice - SPARE);
    fprintf(found->stream, "%s (%s, driver %s, %s): %s: %s; %s runs instead\n", device->name, device->platform,
            device->driver, device->version, name, said, other);
}

static smartmem_status no_other(const Findings *found, const plan_probe *probe, const char *said) {
    char name[1024];
    const smartmem_device *device = &found->plan->device.names;
    name_kernel(found, probe, name, sizeof name);
    return fail(SMARTMEM_WRONG_KERNEL,
                "the self-test failed on %s (%s, driver %s, %s): %s: %s; nothing the plan has is right", device->name,
                device->platform, device->driver, device->version, name, said);
}

/* Tries what may run in the place of a kernel that is wrong. */
static smartmem_status replace(const Findings *found, size_t first, const char *said) {
    const plan_probe *probe = found->plan->index.probes + first;
    const plan_launch *launch = found->plan->index.launches + probe->launches[0];
    unsigned spares = launch->spares_count < MOST_SPARES ? (unsigned)launch->spares_count : MOST_SPARES;
    char other[ERROR_TEXT];
    for (unsigned i = 0; i <= spares; ++i) {
        unsigned choice = i < spares ? SPARE + i : UNOPTIMIZED;
        smartmem_status status = put_in_place(found, probe, choice);
        if (status == SMARTMEM_BAD_PROGRAM)
            continue;
        TRY(status);
        TRY(ask_all(found, first, other));
        if (*other)
            continue;
        found->chosen[first] = (uint8_t)choice;
        report_replaced(found, probe, said, choice);
        return SMARTMEM_OK;
    }
    return no_other(found, probe, said);
}

static smartmem_status ask_kernels(const Findings *found) {
    const plan_index *index = &found->plan->index;
    char said[ERROR_TEXT];
    for (size_t first = 0; first < index->probes_count; first = end_of_kernel(index, first)) {
        TRY(ask_all(found, first, said));
        if (*said)
            TRY(replace(found, first, said));
    }
    return SMARTMEM_OK;
}

static smartmem_status asked(Findings *found) {
    cl_int code;
    found->queue = cl.clCreateCommandQueue(found->plan->context, found->plan->device.handle, 0, &code);
    if (found->queue == NULL)
        return opencl_failed(code, "the device gives no queue");
    found->stream = open_memstream(&found->report, &found->report_bytes);
    smartmem_status status = found->stream == NULL ? fail(SMARTMEM_NO_MEMORY, "there is too little memory for the self-test")
                                                   : ask_kernels(found);
    if (found->stream != NULL && fclose(found->stream) != 0 && status == SMARTMEM_OK)
        status = fail(SMARTMEM_NO_MEMORY, "there is too little memory for the self-test");
    cl.clReleaseCommandQueue(found->queue);
    return status;
}

/* Takes what was found before; not true where there is nothing, or nothing that fits. */
static bool take_kept(Findings *found, int cache, const char *key) {
    const plan_index *index = &found->plan->index;
    size_t bytes, count = index->probes_count;
    uint8_t *kept = cache_read(cache, key, &bytes);
    bool good = kept != NULL && bytes >= count;
    for (size_t i = 0; good && i < count; ++i)
        good = kept[i] < SPARE || kept[i] - SPARE < (int)index->launches[index->probes[i].launches[0]].spares_count;
    for (size_t i = 0; good && i < count; ++i)
        good = kept[i] == ITSELF || put_in_place(found, index->probes + i, kept[i]) == SMARTMEM_OK;
    found->report = good && bytes > count ? zeros(bytes - count + 1, 1) : NULL;
    if (found->report != NULL)
        memcpy(found->report, kept + count, bytes - count);
    free(kept);
    return good;
}

static void keep(const Findings *found, int cache, const char *key) {
    size_t count = found->plan->index.probes_count, bytes = count + found->report_bytes;
    uint8_t *data = malloc(bytes);
    if (data == NULL)
        return;
    memcpy(data, found->chosen, count);
    memcpy(data + count, found->report, found->report_bytes);
    cache_write(cache, key, data, bytes);
    free(data);
}

smartmem_status self_test(Plan *plan, const build_order *order, char **report) {
    Findings found = {.plan = plan, .order = order, .chosen = zeros(plan->index.probes_count, 1)};
    int when = order->options->self_test, cache = cache_open(order->options);
    char key[CACHE_KEY_BYTES];
    smartmem_status status = SMARTMEM_OK;
    *report = NULL;
    key_of(plan, key);
    if (found.chosen == NULL) {
        status = fail(SMARTMEM_NO_MEMORY, "there is too little memory for the self-test");
    } else if (plan->index.probes_count && when >= 0 && (when > 0 || !take_kept(&found, cache, key))) {
        status = asked(&found);
        if (status == SMARTMEM_OK)
            keep(&found, cache, key);
    }
    if (status == SMARTMEM_OK)
        *report = found.report;
    else
        free(found.report);
    free(found.chosen);
    if (cache >= 0)
        close(cache);
    return status;
}
