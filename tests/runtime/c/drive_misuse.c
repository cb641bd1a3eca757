/* What no public function may be given, and what it says then. */

#include <stdint.h>
#include <string.h>

#include "drive.h"

static void misuse_choice(const char *path) {
    smartmem_plan_options options = with_stub();
    smartmem_plan plan;
    const char *paths[65] = {path, NULL}, *missing[] = {path, "/nowhere/at all"};
    const void *data[] = {"junk", NULL};
    const size_t bytes[] = {4, 4};
    CHECK(smartmem_plan_open_fitting(NULL, 1, &options, &plan) == SMARTMEM_BAD_ARGUMENT && !plan.id);
    CHECK(smartmem_plan_open_fitting(paths, 1, &options, NULL) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_plan_open_fitting(paths, 0, &options, &plan) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_plan_open_fitting(paths, 65, &options, &plan) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_plan_open_fitting(paths, SIZE_MAX, &options, &plan) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_plan_open_fitting(paths, 2, &options, &plan) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_plan_open_fitting(missing, 2, &options, &plan) == SMARTMEM_BAD_FILE);
    CHECK(smartmem_plan_open_fitting_memory(NULL, bytes, 1, &options, &plan) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_plan_open_fitting_memory(data, NULL, 1, &options, &plan) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_plan_open_fitting_memory(data + 1, bytes, 1, &options, &plan) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_plan_open_fitting_memory(data, bytes, 1, &options, &plan) == SMARTMEM_BAD_PLAN);
    options.device = "no such device";
    CHECK(smartmem_plan_open_fitting(paths, 1, &options, &plan) == SMARTMEM_NO_DEVICE);
}

static void misuse_plans(const char *path) {
    smartmem_plan_options options = with_stub(), wrong = with_stub();
    smartmem_plan plan;
    char junk[256] = "junk";
    size_t count;
    CHECK(smartmem_abi() == SMARTMEM_ABI && strcmp(smartmem_version(), SMARTMEM_VERSION) == 0);
    CHECK(strlen(smartmem_status_text(SMARTMEM_BUSY)) && strlen(smartmem_status_text((smartmem_status)99)));
    CHECK(smartmem_plan_open(NULL, &options, &plan) == SMARTMEM_BAD_ARGUMENT && !plan.id);
    CHECK(smartmem_plan_open(path, &options, NULL) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_plan_open("/nowhere/at all", &options, &plan) == SMARTMEM_BAD_FILE);
    CHECK(smartmem_plan_open("/", &options, &plan) != SMARTMEM_OK);
    wrong.struct_size = 3;
    CHECK(smartmem_plan_open(path, &wrong, &plan) == SMARTMEM_BAD_ARGUMENT);
    wrong = with_stub();
    wrong.device = "no such device";
    CHECK(smartmem_plan_open(path, &wrong, &plan) == SMARTMEM_NO_DEVICE);
    CHECK(smartmem_plan_open_memory(NULL, 10, &options, &plan) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_plan_open_memory(junk, 0, &options, &plan) == SMARTMEM_BAD_PLAN);
    CHECK(smartmem_plan_open_memory(junk, sizeof junk, &options, &plan) == SMARTMEM_BAD_PLAN);
    CHECK(smartmem_plan_open_descriptor(-1, 0, 0, &options, &plan) == SMARTMEM_BAD_FILE);
    CHECK(smartmem_plan_open_descriptor(0, UINT64_MAX, 5, &options, &plan) != SMARTMEM_OK);
    CHECK(smartmem_devices(NULL, 1, &count) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_devices(NULL, 0, NULL) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_devices(NULL, 0, &count) == SMARTMEM_OK && count == 1);
}

/* All calls with a handle that is none. */
static void misuse_handle(uint64_t id) {
    smartmem_plan plan = {id};
    smartmem_session session = {id}, opened;
    smartmem_plan_info about = {.struct_size = sizeof about};
    smartmem_tensor_info tensor = {.struct_size = sizeof tensor};
    smartmem_dimension_info dimension = {.struct_size = sizeof dimension};
    smartmem_output output;
    const char *report = "untouched";
    float value = 0;
    size_t count;
    CHECK(smartmem_plan_close(plan) == SMARTMEM_BAD_HANDLE);
    CHECK(smartmem_plan_get_self_test(plan, &report) == SMARTMEM_BAD_HANDLE && strcmp(report, "untouched") == 0);
    CHECK(smartmem_plan_get_info(plan, &about) == SMARTMEM_BAD_HANDLE);
    CHECK(smartmem_plan_get_input(plan, 0, &tensor) == SMARTMEM_BAD_HANDLE);
    CHECK(smartmem_plan_get_output(plan, 0, &tensor) == SMARTMEM_BAD_HANDLE);
    CHECK(smartmem_plan_get_dimension(plan, 0, &dimension) == SMARTMEM_BAD_HANDLE);
    CHECK(smartmem_session_open(plan, NULL, &opened) == SMARTMEM_BAD_HANDLE && !opened.id);
    CHECK(smartmem_session_close(session) == SMARTMEM_BAD_HANDLE);
    CHECK(smartmem_set_input(session, "x", &value, 4, NULL, 0) == SMARTMEM_BAD_HANDLE);
    CHECK(smartmem_set_output(session, "y", &value, 4) == SMARTMEM_BAD_HANDLE);
    CHECK(smartmem_run(session) == SMARTMEM_BAD_HANDLE);
    CHECK(smartmem_run_async(session, NULL, NULL) == SMARTMEM_BAD_HANDLE);
    CHECK(smartmem_wait(session) == SMARTMEM_BAD_HANDLE);
    CHECK(smartmem_cancel(session) == SMARTMEM_BAD_HANDLE);
    CHECK(smartmem_get_output(session, "y", &output) == SMARTMEM_BAD_HANDLE);
    CHECK(smartmem_profile(session, NULL, 0, &count) == SMARTMEM_BAD_HANDLE);
}

static void misuse_info(smartmem_plan plan) {
    smartmem_plan_info about = {.struct_size = 1};
    smartmem_tensor_info tensor = {.struct_size = sizeof tensor};
    smartmem_dimension_info dimension = {.struct_size = sizeof dimension};
    const char *report = NULL;
    CHECK(smartmem_plan_get_self_test(plan, NULL) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_plan_get_self_test(plan, &report) == SMARTMEM_OK && strlen(report) == 0);
    CHECK(smartmem_plan_get_info(plan, NULL) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_plan_get_info(plan, &about) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_plan_get_input(plan, 0, NULL) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_plan_get_input(plan, 99, &tensor) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_plan_get_output(plan, UINT32_MAX, &tensor) == SMARTMEM_BAD_ARGUMENT);
    tensor.struct_size = 0;
    CHECK(smartmem_plan_get_output(plan, 0, &tensor) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_plan_get_dimension(plan, 0, NULL) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_plan_get_dimension(plan, 99, &dimension) == SMARTMEM_BAD_ARGUMENT);
}

/* Of a plan with the input x, [6, 10], and the output y of this shape, both of float32. */
static void misuse_session(smartmem_plan plan) {
    static float values[60], results[60];
    static char block[1 << 16];
    const int64_t good[] = {6, 10}, other[] = {10, 6}, negative[] = {-6, -10};
    smartmem_session_options options = SMARTMEM_SESSION_OPTIONS;
    smartmem_session session;
    smartmem_output output;
    size_t count;
    CHECK(smartmem_session_open(plan, NULL, NULL) == SMARTMEM_BAD_ARGUMENT);
    options.struct_size = 0;
    CHECK(smartmem_session_open(plan, &options, &session) == SMARTMEM_BAD_ARGUMENT);
    options = (smartmem_session_options){sizeof options, block, 8, 0};
    CHECK(smartmem_session_open(plan, &options, &session) != SMARTMEM_OK);
    options.memory = block + 1;
    CHECK(smartmem_session_open(plan, &options, &session) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_session_open(plan, NULL, &session) == SMARTMEM_OK);
    CHECK(smartmem_plan_close((smartmem_plan){session.id}) == SMARTMEM_BAD_HANDLE);
    CHECK(smartmem_run((smartmem_session){plan.id}) == SMARTMEM_BAD_HANDLE);
    CHECK(smartmem_set_input(session, NULL, values, sizeof values, NULL, 0) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_set_input(session, "z", values, sizeof values, NULL, 0) == SMARTMEM_BAD_NAME);
    CHECK(smartmem_set_input(session, "x", NULL, sizeof values, NULL, 0) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_set_input(session, "x", values, 5, NULL, 0) == SMARTMEM_BAD_SIZE);
    CHECK(smartmem_set_input(session, "x", values, SIZE_MAX, NULL, 0) == SMARTMEM_BAD_SIZE);
    CHECK(smartmem_set_input(session, "x", values, sizeof values, good, 1) == SMARTMEM_BAD_SIZE);
    CHECK(smartmem_set_input(session, "x", values, sizeof values, other, 2) == SMARTMEM_BAD_SIZE);
    CHECK(smartmem_set_input(session, "x", values, sizeof values, negative, 2) == SMARTMEM_BAD_SIZE);
    CHECK(smartmem_set_input(session, "x", values, sizeof values, good, 1u << 20) == SMARTMEM_BAD_SIZE);
    CHECK(smartmem_run(session) == SMARTMEM_NO_INPUT);
    CHECK(smartmem_wait(session) == SMARTMEM_NO_RESULT);
    CHECK(smartmem_set_input(session, "x", values, sizeof values, good, 2) == SMARTMEM_OK);
    CHECK(smartmem_get_output(session, "y", &output) == SMARTMEM_NO_RESULT);
    CHECK(smartmem_set_output(session, "y", results, 7) == SMARTMEM_BAD_SIZE);
    CHECK(smartmem_set_output(session, "x", results, sizeof results) == SMARTMEM_BAD_NAME);
    CHECK(smartmem_set_output(session, NULL, results, sizeof results) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_set_output(session, "y", results, sizeof results) == SMARTMEM_OK);
    CHECK(smartmem_run(session) == SMARTMEM_OK);
    CHECK(smartmem_get_output(session, "y", NULL) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_get_output(session, NULL, &output) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_get_output(session, "nothing", &output) == SMARTMEM_BAD_NAME);
    CHECK(smartmem_get_output(session, "y", &output) == SMARTMEM_OK && output.data == results);
    CHECK(smartmem_profile(session, NULL, 3, &count) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_profile(session, NULL, 0, NULL) == SMARTMEM_BAD_ARGUMENT);
    CHECK(smartmem_profile(session, NULL, 0, &count) == SMARTMEM_OK && count == 2);
    CHECK(smartmem_cancel(session) == SMARTMEM_OK && smartmem_run(session) == SMARTMEM_OK);
    CHECK(smartmem_session_close(session) == SMARTMEM_OK);
    misuse_handle(session.id);
}

void drive_misuse(const char *path) {
    smartmem_plan_options options = with_stub();
    smartmem_plan plan;
    misuse_plans(path);
    misuse_choice(path);
    CHECK(smartmem_plan_open(path, &options, &plan) == SMARTMEM_OK);
    misuse_info(plan);
    misuse_session(plan);
    CHECK(smartmem_plan_close(plan) == SMARTMEM_OK);
    misuse_handle(plan.id);
    const uint64_t foreign[] = {0, 1, 12345, UINT64_MAX, (uint64_t)(uintptr_t)path, plan.id + 1, plan.id ^ 1u << 24};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; ++i)
        misuse_handle(foreign[i]);
    CHECK(stub_live() == 0);
}
