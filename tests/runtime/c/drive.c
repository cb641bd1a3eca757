/* Drives the library on the stub of OpenCL, under sanitizers.
 *
 *     drive files STUB FILE...     opens each file as a plan and, where that goes, runs it; prints status and message
 *     drive misuse STUB PLAN       calls every public function with what it may not be given
 *     drive fitting STUB FILE...   opens the one that is for the device, of files and in memory, and runs it; prints status
 *                                  and what it was made for, or status and message
 *     drive faults STUB PLAN CACHE [PLAN]   lets each call of OpenCL fail in turn; nothing may crash or stay behind
 *     drive selftest STUB PLAN CACHE   opens a plan that tests itself and runs it; prints status and report or message; a
 *                                      cache that begins with `fd:` is given as a descriptor
 *     drive places STUB PLAN       memory of the application at places that are no multiples of anything
 *     drive repeated STUB PLAN RECORD EXTENT...   one session runs with these extents, with RECORD in its options, and
 *                                  notes in the log where each run ends (drive_repeated.c)
 *     drive threads STUB PLAN      several threads run, start, cancel and close sessions of one plan
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "drive.h"

const char *stub;
long (*stub_calls)(void);
long (*stub_live)(void);
void (*stub_note)(const char *);
static void (*stub_fail_at)(long);
static void (*stub_align)(long);

static void open_stub(const char *path) {
    void *library = dlopen(stub = path, RTLD_NOW);
    CHECK(library != NULL);
    *(void **)&stub_calls = dlsym(library, "stub_calls");
    *(void **)&stub_live = dlsym(library, "stub_live");
    *(void **)&stub_note = dlsym(library, "stub_note");
    *(void **)&stub_fail_at = dlsym(library, "stub_fail_at");
    *(void **)&stub_align = dlsym(library, "stub_align");
}

/* A file in memory that ends with its last byte, so that a sanitizer sees every byte that is read behind it. It begins
 * with a page, or `before` bytes behind the beginning of one. */
static char *file_in_memory(const char *path, size_t before, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    void *data = NULL;
    CHECK(file != NULL);
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    CHECK(posix_memalign(&data, 4096, before + *bytes + !*bytes) == 0);
    CHECK(fread((char *)data + before, 1, *bytes, file) == *bytes);
    fclose(file);
    return data;
}

smartmem_plan_options with_stub(void) {
    smartmem_plan_options options = SMARTMEM_PLAN_OPTIONS;
    options.opencl_library = stub;
    return options;
}

/* Runs a plan with inputs of zeros, at the greatest extents. */
static smartmem_status run_zeros(smartmem_plan plan, int twice) {
    smartmem_session session;
    smartmem_status status = smartmem_session_open(plan, NULL, &session);
    if (status != SMARTMEM_OK)
        return status;
    smartmem_plan_info about = {.struct_size = sizeof about};
    void *inputs[64] = {NULL};
    CHECK(smartmem_plan_get_info(plan, &about) == SMARTMEM_OK);
    for (uint32_t i = 0; i < about.inputs && i < 64 && status == SMARTMEM_OK; ++i) {
        smartmem_tensor_info tensor = {.struct_size = sizeof tensor};
        CHECK(smartmem_plan_get_input(plan, i, &tensor) == SMARTMEM_OK);
        inputs[i] = calloc(1, tensor.bytes < 1 << 26 ? tensor.bytes + 1 : 1);
        status = tensor.bytes < 1 << 26
                     ? smartmem_set_input(session, tensor.name, inputs[i], tensor.bytes, tensor.shape, tensor.rank)
                     : SMARTMEM_NO_MEMORY;
    }
    if (status == SMARTMEM_OK)
        status = smartmem_run(session);
    if (status == SMARTMEM_OK && twice) {
        size_t count;
        smartmem_launch_time times[8];
        smartmem_run_async(session, NULL, NULL);
        status = smartmem_wait(session);
        if (status == SMARTMEM_OK)
            status = smartmem_profile(session, times, 8, &count);
    }
    for (uint32_t i = 0; i < about.outputs && status == SMARTMEM_OK; ++i) {
        smartmem_tensor_info tensor = {.struct_size = sizeof tensor};
        smartmem_output output;
        CHECK(smartmem_plan_get_output(plan, i, &tensor) == SMARTMEM_OK);
        CHECK(smartmem_get_output(session, tensor.name, &output) == SMARTMEM_OK);
        CHECK(output.bytes <= tensor.bytes);
    }
    CHECK(smartmem_session_close(session) == SMARTMEM_OK);
    for (uint32_t i = 0; i < 64; ++i)
        free(inputs[i]);
    return status;
}

static void drive_files(int count, char **paths) {
    for (int i = 0; i < count; ++i) {
        smartmem_plan_options options = with_stub();
        smartmem_plan plan;
        size_t bytes, before = i % 2 ? 8 : 0; /* constants are used in place, or copied */
        char *data = file_in_memory(paths[i], before, &bytes);
        smartmem_status status = smartmem_plan_open_memory(data + before, bytes, &options, &plan);
        if (status == SMARTMEM_OK) {
            status = run_zeros(plan, 0);
            CHECK(smartmem_plan_close(plan) == SMARTMEM_OK);
        }
        CHECK(stub_live() == 0);
        printf("%d %s\n", (int)status, status == SMARTMEM_OK ? "" : smartmem_last_error());
        free(data);
    }
}

static void drive_fitting(int count, char **paths) {
    static const void *data[64];
    static size_t bytes[64];
    smartmem_plan_options options = with_stub();
    smartmem_plan plan;
    smartmem_plan_info about = {.struct_size = sizeof about};
    for (int i = 0; i < count && i < 64; ++i)
        data[i] = file_in_memory(paths[i], 0, bytes + i);
    smartmem_status status = smartmem_plan_open_fitting((const char *const *)paths, (size_t)count, &options, &plan);
    if (status == SMARTMEM_OK) {
        CHECK(smartmem_plan_get_info(plan, &about) == SMARTMEM_OK);
        printf("0 %s\n", about.target);
        CHECK(run_zeros(plan, 0) == SMARTMEM_OK && smartmem_plan_close(plan) == SMARTMEM_OK);
    } else {
        printf("%d %s\n", (int)status, smartmem_last_error());
        CHECK(!plan.id);
    }
    CHECK(smartmem_plan_open_fitting_memory(data, bytes, (size_t)count, &options, &plan) == status);
    if (status == SMARTMEM_OK) {
        about.target = "";
        about.struct_size = offsetof(smartmem_plan_info, target); /* of a program that does not know the field */
        CHECK(smartmem_plan_get_info(plan, &about) == SMARTMEM_OK && !*about.target && about.launches == 2);
        CHECK(run_zeros(plan, 0) == SMARTMEM_OK && smartmem_plan_close(plan) == SMARTMEM_OK);
    }
    CHECK(stub_live() == 0);
    for (int i = 0; i < count && i < 64; ++i)
        free((void *)(uintptr_t)data[i]);
}

static void drive_faults(const char *path, const char *cache, const char *other) {
    const char *const both[] = {other, path};
    long needed = 0, failed = 0;
    for (long call = 0; call <= needed; ++call) {
        smartmem_plan_options options = with_stub();
        smartmem_plan plan;
        options.cache_folder = cache;
        options.self_test = 1;
        stub_fail_at(call); /* 0: none */
        smartmem_status status = other != NULL ? smartmem_plan_open_fitting(both, 2, &options, &plan)
                                               : smartmem_plan_open(path, &options, &plan);
        if (status == SMARTMEM_OK) {
            status = run_zeros(plan, 1);
            CHECK(smartmem_plan_close(plan) == SMARTMEM_OK);
        }
        CHECK(call > 0 || status == SMARTMEM_OK);
        CHECK(status == SMARTMEM_OK || strlen(smartmem_last_error()));
        CHECK(stub_live() == 0);
        needed = call ? needed : stub_calls();
        failed += status != SMARTMEM_OK;
    }
    printf("%ld of %ld calls that fail are errors\n", failed, needed);
}

static void drive_selftest(const char *path, const char *cache) {
    smartmem_plan_options options = with_stub();
    smartmem_plan plan;
    const char *report = "";
    int descriptor = strncmp(cache, "fd:", 3) == 0 ? open(cache + 3, O_RDONLY) : -1;
    if (descriptor >= 0)
        options.cache_descriptor = &descriptor;
    else
        options.cache_folder = cache;
    smartmem_status status = smartmem_plan_open(path, &options, &plan);
    close(descriptor);
    if (status == SMARTMEM_OK) {
        CHECK(smartmem_plan_get_self_test(plan, NULL) == SMARTMEM_BAD_ARGUMENT);
        CHECK(smartmem_plan_get_self_test(plan, &report) == SMARTMEM_OK);
        printf("0 %s", report);
        CHECK(run_zeros(plan, 1) == SMARTMEM_OK);
        CHECK(smartmem_plan_close(plan) == SMARTMEM_OK);
        CHECK(smartmem_plan_get_self_test(plan, &report) == SMARTMEM_BAD_HANDLE);
    } else {
        printf("%d %s", (int)status, smartmem_last_error());
    }
    CHECK(stub_live() == 0);
}

/* Runs a plan of the input x and the output y, [6, 10] of float32, whose own bytes, input and output lie somewhere. */
static void run_at(const char *path, size_t before) {
    static _Alignas(4096) char input[512], output[512], block[1 << 16];
    smartmem_plan_options options = with_stub();
    smartmem_session_options room = SMARTMEM_SESSION_OPTIONS;
    smartmem_plan plan;
    smartmem_session session;
    smartmem_plan_info about = {.struct_size = sizeof about};
    size_t bytes;
    char *data = file_in_memory(path, before, &bytes);
    CHECK(smartmem_plan_open_memory(data + before, bytes, &options, &plan) == SMARTMEM_OK);
    CHECK(smartmem_plan_get_info(plan, &about) == SMARTMEM_OK);
    room.memory = block + before;
    room.memory_bytes = sizeof block - before;
    CHECK(smartmem_session_open(plan, &room, &session) == (before % 128 ? SMARTMEM_BAD_ARGUMENT : SMARTMEM_OK));
    if (before % 128)
        CHECK(smartmem_session_open(plan, NULL, &session) == SMARTMEM_OK);
    CHECK(smartmem_set_input(session, "x", input + before, 240, NULL, 0) == SMARTMEM_OK);
    CHECK(smartmem_set_output(session, "y", output + before, 240) == SMARTMEM_OK);
    CHECK(smartmem_run(session) == SMARTMEM_OK);
    CHECK(smartmem_session_close(session) == SMARTMEM_OK && smartmem_plan_close(plan) == SMARTMEM_OK);
    CHECK(stub_live() == 0);
    free(data);
}

static void drive_places(const char *path) {
    static const size_t PLACES[] = {0, 1, 2, 4, 8, 16, 32, 64, 128};
    for (long alignment = 1; alignment <= 128; alignment *= 16) {
        stub_align(alignment);
        for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; ++i)
            run_at(path, PLACES[i]);
    }
}

/* What threads share: a plan with the input x and the output y, and the session that two of them use at once. */
typedef struct shared {
    smartmem_plan plan;
    smartmem_session session;
} shared;

static float values[60];

static void *disturb(void *given) {
    smartmem_session session = ((shared *)given)->session;
    for (int i = 0; i < 200; ++i) {
        smartmem_output output;
        smartmem_cancel(session);
        smartmem_get_output(session, "y", &output);
        smartmem_set_input(session, "x", values, sizeof values, NULL, 0);
    }
    return NULL;
}

static void *use(void *given) {
    for (int k = 0; k < 10; ++k) {
        shared own = {.plan = ((shared *)given)->plan};
        pthread_t other;
        CHECK(smartmem_session_open(own.plan, NULL, &own.session) == SMARTMEM_OK);
        CHECK(smartmem_set_input(own.session, "x", values, sizeof values, NULL, 0) == SMARTMEM_OK);
        CHECK(pthread_create(&other, NULL, disturb, &own) == 0);
        for (int i = 0; i < 30; ++i) {
            smartmem_run(own.session);
            smartmem_run_async(own.session, NULL, NULL);
            if (i % 3 == 0)
                smartmem_wait(own.session);
        }
        CHECK(smartmem_session_close(own.session) == SMARTMEM_OK);
        pthread_join(other, NULL);
    }
    return NULL;
}

static void drive_threads(const char *path) {
    smartmem_plan_options options = with_stub();
    shared shared;
    pthread_t threads[4];
    CHECK(smartmem_plan_open(path, &options, &shared.plan) == SMARTMEM_OK);
    for (int i = 0; i < 4; ++i)
        CHECK(pthread_create(threads + i, NULL, use, &shared) == 0);
    for (int i = 0; i < 4; ++i)
        pthread_join(threads[i], NULL);
    CHECK(smartmem_plan_close(shared.plan) == SMARTMEM_OK);
    CHECK(stub_live() == 0);
}

int main(int count, char **arguments) {
    CHECK(count > 3);
    if (strcmp(arguments[1], "pages") == 0) {
        stub = arguments[2];
        drive_pages(arguments[3], 1);
        return 0;
    }
    open_stub(arguments[2]);
    if (strcmp(arguments[1], "files") == 0)
        drive_files(count - 3, arguments + 3);
    else if (strcmp(arguments[1], "fitting") == 0)
        drive_fitting(count - 3, arguments + 3);
    else if (strcmp(arguments[1], "misuse") == 0)
        drive_misuse(arguments[3]);
    else if (strcmp(arguments[1], "selftest") == 0)
        drive_selftest(arguments[3], arguments[4]);
    else if (strcmp(arguments[1], "own-pages") == 0)
        drive_pages(arguments[3], 0);
    else if (strcmp(arguments[1], "places") == 0)
        drive_places(arguments[3]);
    else if (strcmp(arguments[1], "repeated") == 0)
        drive_repeated(arguments[3], atoi(arguments[4]), count - 5, arguments + 5);
    else if (strcmp(arguments[1], "threads") == 0)
        drive_threads(arguments[3]);
    else
        drive_faults(arguments[3], arguments[4], count > 5 ? arguments[5] : NULL);
    return 0;
}
