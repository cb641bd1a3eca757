/* What the public functions have in common: checks of their arguments. */
#ifndef SMARTMEM_ARGUMENTS_H
#define SMARTMEM_ARGUMENTS_H

#include "status.h"

static inline smartmem_status null_argument(const char *name) {
    return fail(SMARTMEM_BAD_ARGUMENT, "%s is null", name);
}

static inline smartmem_status bad_handle(const char *kind) {
    return fail(SMARTMEM_BAD_HANDLE, "this is no open %s", kind);
}

/* Whether a struct of the caller is as long as the first version of it; later ones may be longer. */
static inline smartmem_status check_struct(size_t given, size_t known) {
    if (given >= known && given < 16 * known)
        return SMARTMEM_OK;
    return fail(SMARTMEM_BAD_ARGUMENT, "struct_size is %zu, and this library needs %zu", given, known);
}

#endif
