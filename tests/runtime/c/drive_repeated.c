/* Runs of one session, one after the other, with other values and other extents. */

#include <stdint.h>
#include <string.h>

#include "drive.h"

enum { COUNT = 60, MOST = 1 << 16 };

static float values[MOST];

/* y = (x + c) * 2, where c is 0, 1/8, 2/8 and so on. The stub computes no plans with open dimensions. */
static void check_result(smartmem_plan plan, smartmem_session session) {
    smartmem_plan_info about = {.struct_size = sizeof about};
    smartmem_output output;
    CHECK(smartmem_plan_get_info(plan, &about) == SMARTMEM_OK);
    if (about.dimensions)
        return;
    CHECK(smartmem_get_output(session, "y", &output) == SMARTMEM_OK);
    const float *results = output.data;
    for (int i = 0; i < COUNT; ++i)
        CHECK(results[i] == (values[i] + (float)i / 8) * 2);
}

/* Gives the input, of which each open extent becomes `extent`. */
static void set_input(smartmem_plan plan, smartmem_session session, int64_t extent, int run) {
    smartmem_tensor_info tensor = {.struct_size = sizeof tensor};
    size_t elements = 1;
    CHECK(smartmem_plan_get_input(plan, 0, &tensor) == SMARTMEM_OK);
    for (uint32_t i = 0; i < tensor.rank; ++i) {
        tensor.shape[i] = tensor.varies >> i & 1 ? extent : tensor.shape[i];
        elements *= (size_t)tensor.shape[i];
    }
    CHECK(elements <= MOST);
    for (size_t i = 0; i < elements; ++i)
        values[i] = (float)(i % 16 + (size_t)run);
    CHECK(smartmem_set_input(session, tensor.name, values, 4 * elements, tensor.shape, tensor.rank) == SMARTMEM_OK);
}

/* @param extents of each run; a letter behind it has another call than `smartmem_run`: `a` runs asynchronously */
void drive_repeated(const char *path, int record, int count, char **extents) {
    smartmem_plan_options options = with_stub();
    smartmem_session_options how = SMARTMEM_SESSION_OPTIONS;
    smartmem_plan plan;
    smartmem_session session;
    how.record = record;
    CHECK(smartmem_plan_open(path, &options, &plan) == SMARTMEM_OK);
    CHECK(smartmem_session_open(plan, &how, &session) == SMARTMEM_OK);
    for (int i = 0; i < count; ++i) {
        char *end;
        set_input(plan, session, strtol(extents[i], &end, 10), i);
        stub_note("run");
        if (*end == 'a')
            CHECK(smartmem_run_async(session, NULL, NULL) == SMARTMEM_OK && smartmem_wait(session) == SMARTMEM_OK);
        else
            CHECK(smartmem_run(session) == SMARTMEM_OK);
        check_result(plan, session);
    }
    stub_note("run");
    CHECK(smartmem_session_close(session) == SMARTMEM_OK);
    CHECK(smartmem_plan_close(plan) == SMARTMEM_OK);
    CHECK(stub_live() == 0);
}
