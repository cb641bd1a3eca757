#define _GNU_SOURCE
#include "programs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache.h"
#include "processor.h"
#include "ptx_target.h"

enum { TEXTS_ON_CPU = 32, TEXTS_ELSEWHERE = 4, COMPILE_THREADS = 8, LOG_LINES = 30 };

/* A text may say how its own operations round, and the next one begins anew. */
static const char PART[] = "#pragma OPENCL FP_CONTRACT DEFAULT\n#define %s %s_%u\n%s\n#undef %s\n";
/* How what every kernel relies on ends (codegen/prelude.cl). */
static const char PRELUDE_END[] = "\n#endif // SMR_PRELUDE\n";
/* How launches of several kernels declare the local memory that these part (codegen/composed.cl). */
static const char SHARED[] = "__local float smr_local[";
/* How products of bytes begin that a processor's matrix unit may compute (codegen/contraction_panel.cl). */
static const char BYTE_UNIT[] = "#ifdef SMR_BYTE_TILES";

/* The option by which a compiler leaves out what it may do wrong (OpenCL 3.0 API, 5.8.6.4). */
static const char UNOPTIMIZED[] = "-cl-opt-disable";

/* What the threads that compile have in common. */
typedef struct Work {
    const build_order *order;
    Programs *programs;
    int cache;
    pthread_mutex_t lock;
    uint32_t next, done;
    smartmem_status status;
    char error[ERROR_TEXT];
} Work;

static smartmem_status no_memory(void) {
    return fail(SMARTMEM_NO_MEMORY, "there is too little memory");
}

static bool append(char **all, size_t *bytes, const char *text, size_t length) {
    char *more = realloc(*all, *bytes + length);
    if (more == NULL)
        return false;
    memcpy(more + *bytes, text, length);
    *all = more;
    *bytes += length;
    return true;
}

static bool append_options(built_text *text, const build_order *order, const char *effect) {
    size_t after = 0;
    const char *value;
    while ((value = device_workaround(order->index, order->device, effect, &after)) != NULL)
        if (!append(&text->options, &text->options_bytes, value, strlen(value) + 1))
            return false;
    return true;
}

/* Adds a kernel's options, and those that the device's driver needs. */
static smartmem_status take_options(built_text *text, const build_order *order, char *const *options, size_t count) {
    const char *source = text_of(order->index->texts[text->text]);
    bool good = true;
    for (size_t i = 0; good && i < count; ++i)
        good = append(&text->options, &text->options_bytes, text_of(options[i]), strlen(text_of(options[i])) + 1);
    good = good && append_options(text, order, "option");
    if (strstr(source, SHARED) != NULL)
        good = good && append_options(text, order, "option_of_joined");
    if (strstr(source, BYTE_UNIT) != NULL && processor_has_byte_unit())
        good = good && append_options(text, order, "option_of_byte_unit");
    return good ? SMARTMEM_OK : no_memory();
}

/* What a launch's kernel is compiled from. */
static smartmem_status text_of_launch(built_text *text, const build_order *order, const plan_launch *launch) {
    *text = (built_text){.text = launch->text, .entry = launch->entry, .launch = text_of(launch->name)};
    return take_options(text, order, launch->options, launch->options_count);
}

static bool same_options(const built_text *a, const built_text *b) {
    return a->options_bytes == b->options_bytes &&
           (!a->options_bytes || memcmp(a->options, b->options, a->options_bytes) == 0);
}

static smartmem_status collect(Programs *all, const build_order *order) {
    const plan_index *index = order->index;
    for (uint32_t l = 0; l < index->launches_count; ++l) {
        built_text *one = all->texts + all->count;
        smartmem_status status = text_of_launch(one, order, index->launches + l);
        uint32_t same = 0;
        while (same < all->count && !(all->texts[same].text == one->text && same_options(all->texts + same, one) &&
                                      strcmp(all->texts[same].entry, one->entry) == 0))
            ++same;
        all->of_launch[l] = same;
        if (same < all->count)
            free(one->options);
        else
            ++all->count;
        TRY(status);
    }
    return SMARTMEM_OK;
}

/* Parts the texts into programs; all texts of one have the same options. */
static void part_into_chunks(Programs *all, uint32_t most) {
    for (uint32_t first = 0; first < all->count; ++first) {
        uint32_t before = 0, members = 0;
        while (before < first && !same_options(all->texts + before, all->texts + first))
            ++before;
        if (before < first)
            continue;
        for (uint32_t i = first; i < all->count; ++i) {
            if (!same_options(all->texts + i, all->texts + first))
                continue;
            all->chunks += members % most == 0;
            all->texts[i].chunk = all->chunks - 1;
            all->texts[i].place = members++ % most;
        }
    }
}

/* The compiler's messages, the first lines of them. */
static smartmem_status refused(cl_program program, const Device *device, const char *launch, cl_int code) {
    size_t bytes = 0;
    char *log = NULL;
    if (cl.clGetProgramBuildInfo(program, device->handle, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) == CL_SUCCESS)
        log = zeros(bytes + 1, 1);
    if (log != NULL)
        cl.clGetProgramBuildInfo(program, device->handle, CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
    char *end = log;
    for (int line = 0; end != NULL && line < LOG_LINES; ++line)
        end = strchr(end + (line > 0), '\n');
    if (end != NULL)
        *end = 0;
    fail(SMARTMEM_BAD_PROGRAM, "the kernel %s does not compile (OpenCL error %d):\n%s", launch, (int)code, text_of(log));
    free(log);
    return SMARTMEM_BAD_PROGRAM;
}

static void keep(const Work *work, const char *key, cl_program program) {
    size_t bytes = 0;
    if (work->cache < 0 ||
        cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) != CL_SUCCESS || !bytes)
        return;
    unsigned char *binary = malloc(bytes);
    if (binary != NULL && cl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) == CL_SUCCESS)
        cache_write(work->cache, key, binary, bytes);
    free(binary);
}

/* The section of a program that the plan brings along, or NULL. */
static const smartmem_format_Section *brought(const plan_index *index, const char *key) {
    for (size_t i = 0; i < index->binaries_count; ++i)
        if (strcmp(text_of(index->binaries[i].key), key) == 0)
            return &index->binaries[i].section;
    return NULL;
}

/* A program from the plan or the cache; NULL where there is none, or the driver refuses it, as it may after an update. */
static cl_program kept(const Work *work, const char *key, const char *options) {
    const smartmem_format_Section *section = brought(work->order->index, key);
    size_t bytes = section != NULL ? (size_t)section->size : 0;
    uint8_t *binary = section == NULL ? cache_read(work->cache, key, &bytes) : NULL;
    cl_int code = CL_SUCCESS, status;
    cl_device handle = work->order->device->handle;
    if (binary == NULL && section == NULL)
        return NULL;
    const unsigned char *from = section != NULL ? work->order->file->data + section->offset : binary;
    cl_program program =
        cl.clCreateProgramWithBinary(work->order->context, 1, &handle, &bytes, &from, &status, &code);
    free(binary);
    if (code != CL_SUCCESS || program == NULL)
        return NULL;
    if (cl.clBuildProgram(program, 1, &handle, options, NULL, NULL) == CL_SUCCESS)
        return program;
    cl.clReleaseProgram(program);
    return NULL;
}

/* The options in one text, behind which there is room for one more. */
static char *joined_options(const built_text *text) {
    char *options = zeros(text->options_bytes + sizeof PTX_TARGET_IS_SET + 1, 1);
    for (size_t i = 0; options != NULL && i + 1 < text->options_bytes; ++i)
        options[i] = text->options[i] ? text->options[i] : ' ';
    return options;
}

static smartmem_status compile_anew(const Work *work, const char *source, const built_text *first, char *options,
                                    cl_program *program) {
    const Device *device = work->order->device;
    cl_device handle = device->handle;
    cl_int code;
    const char *target = ptx_target(first->options, first->options_bytes);
    char *end = options + strlen(options);
    *program = cl.clCreateProgramWithSource(work->order->context, 1, &source, NULL, &code);
    if (*program == NULL)
        return opencl_failed(code, "the driver makes no program");
    if (target != NULL)
        strcpy(end, " " PTX_TARGET_IS_SET);
    code = cl.clBuildProgram(*program, 1, &handle, options, NULL, NULL);
    *end = 0;
    if (code == CL_SUCCESS)
        return target == NULL ? SMARTMEM_OK
                              : ptx_retarget(program, work->order->context, device, target, options, first->launch);
    smartmem_status status = refused(*program, device, first->launch, code);
    cl.clReleaseProgram(*program);
    *program = NULL;
    return status;
}

static smartmem_status compile(const Work *work, const char *source, const built_text *first, cl_program *program) {
    char key[CACHE_KEY_BYTES], *options = joined_options(first);
    if (options == NULL)
        return no_memory();
    bool looks = work->cache >= 0 || work->order->index->binaries_count;
    if (looks)
        cache_key(key, source, first->options, first->options_bytes, work->order->device);
    *program = looks ? kept(work, key, options) : NULL;
    smartmem_status status = SMARTMEM_OK;
    if (*program == NULL) {
        status = compile_anew(work, source, first, options, program);
        if (status == SMARTMEM_OK)
            keep(work, key, *program);
    }
    free(options);
    return status;
}

/* A text without the beginning that the first one of its program has, too: compilers read every copy of it. */
static const char *without_prelude(const char *text, const char *first) {
    const char *end = strstr(text, PRELUDE_END);
    size_t bytes = end == NULL ? 0 : (size_t)(end - text) + sizeof PRELUDE_END - 1;
    return first != NULL && strncmp(text, first, bytes) == 0 ? text + bytes : text;
}

/* The text of one program of a whole chunk, which the caller frees. */
static char *joined_text(const Work *work, uint32_t chunk) {
    char *source = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&source, &bytes);
    const char *first = NULL;
    for (uint32_t i = 0; stream != NULL && i < work->programs->count; ++i) {
        const built_text *one = work->programs->texts + i;
        if (one->chunk != chunk)
            continue;
        const char *text = text_of(work->order->index->texts[one->text]);
        if (first != NULL)
            fputc('\n', stream);
        fprintf(stream, PART, one->entry, one->entry, one->place, without_prelude(text, first), one->entry);
        first = first != NULL ? first : text;
    }
    if (stream == NULL || fclose(stream) != 0) {
        free(source);
        return NULL;
    }
    return source;
}

static smartmem_status build_together(const Work *work, uint32_t chunk, built_text *first) {
    cl_program program;
    char *source = joined_text(work, chunk);
    if (source == NULL)
        return no_memory();
    smartmem_status status = compile(work, source, first, &program);
    free(source);
    TRY(status);
    for (built_text *one = first; one < work->programs->texts + work->programs->count; ++one)
        if (one->chunk == chunk) {
            one->joined = true;
            one->program = program;
        }
    return SMARTMEM_OK;
}

static smartmem_status build_chunk(Work *work, uint32_t chunk, uint32_t *members) {
    built_text *end = work->programs->texts + work->programs->count, *first = work->programs->texts;
    while (first->chunk != chunk)
        ++first;
    *members = 0;
    for (const built_text *one = first; one < end; ++one)
        *members += one->chunk == chunk;
    /* one at a time finds the kernel at fault, or copes with texts that do not go together */
    if (*members > 1 && build_together(work, chunk, first) == SMARTMEM_OK)
        return SMARTMEM_OK;
    for (built_text *one = first; one < end; ++one)
        if (one->chunk == chunk)
            TRY(compile(work, text_of(work->order->index->texts[one->text]), one, &one->program));
    return SMARTMEM_OK;
}

static void *build_chunks(void *shared) {
    Work *work = shared;
    const smartmem_plan_options *options = work->order->options;
    pthread_mutex_lock(&work->lock);
    while (work->next < work->programs->chunks && work->status == SMARTMEM_OK) {
        uint32_t chunk = work->next++, members;
        pthread_mutex_unlock(&work->lock);
        smartmem_status status = build_chunk(work, chunk, &members);
        pthread_mutex_lock(&work->lock);
        if (status != SMARTMEM_OK && work->status == SMARTMEM_OK) {
            work->status = status;
            snprintf(work->error, sizeof work->error, "%s", smartmem_last_error());
        }
        work->done += members;
        if (status == SMARTMEM_OK && options->progress != NULL)
            options->progress(work->done, work->programs->count, options->user);
    }
    pthread_mutex_unlock(&work->lock);
    return NULL;
}

static Work begin_work(Programs *all, const build_order *order) {
    Work work = {.order = order, .programs = all, .cache = -1, .lock = PTHREAD_MUTEX_INITIALIZER};
    if (!device_has_workaround(order->index, order->device, "driver_keeps_programs"))
        work.cache = cache_open(order->options);
    return work;
}

static uint32_t thread_count(const build_order *order, uint32_t chunks) {
    uint32_t most = chunks < COMPILE_THREADS ? chunks : COMPILE_THREADS;
    size_t after = 0;
    const char *value;
    while ((value = device_workaround(order->index, order->device, "compile_threads", &after)) != NULL) {
        unsigned long said = strtoul(value, NULL, 10);
        if (said && said < most)
            most = (uint32_t)said;
    }
    return most;
}

static smartmem_status build_all(Programs *all, const build_order *order) {
    Work work = begin_work(all, order);
    pthread_t threads[COMPILE_THREADS];
    uint32_t started = 0, wanted = thread_count(order, all->chunks);
    while (started + 1 < wanted && pthread_create(threads + started, NULL, build_chunks, &work) == 0)
        ++started;
    build_chunks(&work);
    while (started)
        pthread_join(threads[--started], NULL);
    if (work.cache >= 0)
        close(work.cache);
    return work.status == SMARTMEM_OK ? SMARTMEM_OK : fail(work.status, "%s", work.error);
}

smartmem_status programs_open(Programs *programs, const build_order *order) {
    size_t launches = order->index->launches_count;
    *programs = (Programs){.texts = zeros(launches, sizeof *programs->texts),
                                  .of_launch = zeros(launches, sizeof *programs->of_launch)};
    smartmem_status status = SMARTMEM_OK;
    if (programs->texts == NULL || programs->of_launch == NULL)
        status = no_memory();
    if (status == SMARTMEM_OK)
        status = collect(programs, order);
    if (status == SMARTMEM_OK) {
        part_into_chunks(programs, order->device->host_memory ? TEXTS_ON_CPU : TEXTS_ELSEWHERE);
        status = build_all(programs, order);
    }
    if (status != SMARTMEM_OK)
        programs_close(programs);
    return status;
}

smartmem_status programs_replace(Programs *programs, const build_order *order, const uint32_t *launches, size_t count,
                                 const smartmem_format_Spare *spare) {
    const plan_launch *launch = order->index->launches + launches[0];
    built_text *more = realloc(programs->texts, (programs->count + 1) * sizeof *more), *one;
    if (more == NULL)
        return no_memory();
    programs->texts = more;
    one = more + programs->count;
    *one = (built_text){.text = spare ? spare->text : launch->text,
                        .entry = spare ? spare->entry : launch->entry,
                        .launch = text_of(launch->name),
                        .chunk = UINT32_MAX};
    smartmem_status status = spare ? take_options(one, order, spare->options, spare->options_count)
                                   : take_options(one, order, launch->options, launch->options_count);
    if (status == SMARTMEM_OK && !spare && !append(&one->options, &one->options_bytes, UNOPTIMIZED, sizeof UNOPTIMIZED))
        status = no_memory();
    Work work = begin_work(programs, order);
    if (status == SMARTMEM_OK)
        status = compile(&work, text_of(order->index->texts[one->text]), one, &one->program);
    if (work.cache >= 0)
        close(work.cache);
    if (status != SMARTMEM_OK) {
        free(one->options);
        return status;
    }
    for (size_t i = 0; i < count; ++i)
        programs->of_launch[launches[i]] = programs->count;
    ++programs->count;
    return SMARTMEM_OK;
}

void programs_close(Programs *programs) {
    for (uint32_t i = 0; programs->texts != NULL && i < programs->count; ++i) {
        const built_text *one = programs->texts + i;
        if (one->program != NULL && (!one->joined || one->place == 0))
            cl.clReleaseProgram(one->program);
        free(one->options);
    }
    free(programs->texts);
    free(programs->of_launch);
    *programs = (Programs){0};
}

smartmem_status programs_kernel(const Programs *programs, const plan_index *index, uint32_t launch, cl_kernel *kernel) {
    const built_text *text = programs->texts + programs->of_launch[launch];
    char name[512];
    cl_int code;
    if (text->joined)
        snprintf(name, sizeof name, "%s_%u", text->entry, text->place);
    else
        snprintf(name, sizeof name, "%s", text->entry);
    *kernel = cl.clCreateKernel(text->program, name, &code);
    if (*kernel != NULL)
        return SMARTMEM_OK;
    return fail(SMARTMEM_BAD_PROGRAM, "the program has no kernel %s for the launch %s (OpenCL error %d)", name,
                text_of(index->launches[launch].name), (int)code);
}
