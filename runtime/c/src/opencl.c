#include "opencl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "driver_pages.h"

opencl cl;

/* libraries of loaders first, then those of drivers where phones keep them */
static const char *const PLACES[] = {
    "libOpenCL.so.1",
    "libOpenCL.so",
    "/vendor/lib64/libOpenCL.so",
    "/system/vendor/lib64/libOpenCL.so",
    "/system/lib64/libOpenCL.so",
    "/vendor/lib64/egl/libGLES_mali.so",
    "/system/vendor/lib64/egl/libGLES_mali.so",
    "/vendor/lib64/libPVROCL.so",
    "/vendor/lib/libOpenCL.so",
    "/system/vendor/lib/libOpenCL.so",
    "/vendor/lib/egl/libGLES_mali.so",
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool opened;

static void *library_at(const char *path) {
    void *library = NULL;
    if (path != NULL && *path)
        return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library == NULL && i < sizeof PLACES / sizeof *PLACES; ++i)
        library = dlopen(PLACES[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

/* The name of a function that the library does not have, else NULL. */
static const char *missing_function(void *library) {
    void *found;
#define OPENCL_FIND(result, name, parameters)                                                                          \
    found = dlsym(library, #name);                                                                                     \
    if (found == NULL)                                                                                                 \
        return #name;                                                                                                  \
    memcpy(&cl.name, &found, sizeof found);
    OPENCL_FUNCTIONS(OPENCL_FIND)
#undef OPENCL_FIND
    return NULL;
}

static smartmem_status open_now(const char *path) {
    if (path == NULL)
        path = getenv("SMARTMEM_OPENCL");
    driver_pages_before();
    void *library = library_at(path);
    if (library == NULL) {
        const char *reason = dlerror();
        if (path != NULL && *path)
            return fail(SMARTMEM_NO_DEVICE, "the OpenCL library cannot be opened: %s", text_of(reason));
        return fail(SMARTMEM_NO_DEVICE, "there is no libOpenCL.so here, and no driver where phones keep theirs; install "
                                        "the OpenCL driver of a device, or name a library in SMARTMEM_OPENCL");
    }
    const char *missing = missing_function(library);
    if (missing != NULL) {
        dlclose(library);
        return fail(SMARTMEM_NO_DEVICE, "the OpenCL library has no %s; version 1.2 is needed", missing);
    }
    opened = true;
    return SMARTMEM_OK;
}

smartmem_status opencl_open(const char *path) {
    pthread_mutex_lock(&lock);
    smartmem_status status = opened ? SMARTMEM_OK : open_now(path);
    pthread_mutex_unlock(&lock);
    return status;
}

smartmem_status opencl_failed(cl_int code, const char *what) {
    bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES || code == CL_OUT_OF_HOST_MEMORY;
    return fail(memory ? SMARTMEM_NO_MEMORY : SMARTMEM_DEVICE_ERROR, "%s (OpenCL error %d)", what, (int)code);
}
