#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local char last_error[ERROR_TEXT];

static const char *const MEANINGS[] = {
    "good",
    "an argument is null or out of range",
    "the handle is closed, or was never given out",
    "no input or output has this name",
    "a shape or a number of bytes is wrong",
    "an input was not set",
    "no run has ended well yet",
    "a file cannot be read",
    "this is no plan, or it is damaged or of another version",
    "there is no OpenCL library, or no such device",
    "the device cannot run this plan",
    "the compiler of the driver refuses a kernel",
    "there is too little memory",
    "the driver refuses a call",
    "the session runs",
    "the run was cancelled",
    "the device computes a kernel of the plan wrongly",
};

smartmem_status fail(smartmem_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    return status;
}

void *zeros(size_t count, size_t size) {
    return calloc(count ? count : 1, size ? size : 1);
}

const char *text_of(const char *text) {
    return text == NULL ? "" : text;
}

uint32_t smartmem_abi(void) {
    return SMARTMEM_ABI;
}

const char *smartmem_version(void) {
    return SMARTMEM_VERSION;
}

const char *smartmem_status_text(smartmem_status status) {
    size_t known = sizeof MEANINGS / sizeof *MEANINGS;
    return (unsigned)status < known ? MEANINGS[status] : "there is no such status";
}

const char *smartmem_last_error(void) {
    return last_error;
}
