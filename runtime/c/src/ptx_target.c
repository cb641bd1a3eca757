#include "ptx_target.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char ASKS[] = "-DSMR_TARGET=";
static const char TARGET[] = ".target ";
static const char MARK[] = "//@ ";

const char *ptx_target(const char *options, size_t bytes) {
    for (const char *one = options; one < options + bytes; one += strlen(one) + 1)
        if (strncmp(one, ASKS, sizeof ASKS - 1) == 0)
            return one + sizeof ASKS - 1;
    return NULL;
}

static smartmem_status refused(const char *launch, const char *why, const char *target) {
    return fail(SMARTMEM_BAD_PROGRAM, "the kernel %s does not compile: %s %s", launch, why, target);
}

/* Where PTX names its target, NULL where a text is no PTX. */
static const char *named(const char *ptx) {
    const char *at = ptx;
    while ((at = strstr(at, TARGET)) != NULL && at != ptx && at[-1] != '\n')
        ++at;
    return at == NULL ? NULL : at + sizeof TARGET - 1;
}

smartmem_status ptx_with_target(const char *ptx, const char *target, const char *launch, char **changed) {
    const char *at = named(ptx);
    size_t processor = strlen(target) - 1;
    if (at == NULL)
        return refused(launch, "the driver's binary is no PTX, which it has to be for", target);
    if (strncmp(at, target, processor) != 0 || isalnum((unsigned char)at[processor]))
        return refused(launch, "the driver's PTX is for another processor than", target);
    if (strstr(ptx, MARK) == NULL)
        return refused(launch, "the driver's PTX has lost the instructions of", target);
    char *to = *changed = zeros(strlen(ptx) + 2, 1);
    if (to == NULL)
        return fail(SMARTMEM_NO_MEMORY, "there is too little memory");
    for (const char *from = ptx; *from;) {
        if (from == at + processor)
            *to++ = target[processor];
        if (strncmp(from, MARK, sizeof MARK - 1) == 0)
            from += sizeof MARK - 1;
        else
            *to++ = *from++;
    }
    return SMARTMEM_OK;
}

/* The driver's binary of a program with a zero behind it, which the caller frees; NULL where there is none. */
static char *binary_of(cl_program program) {
    size_t bytes = 0;
    if (cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) != CL_SUCCESS)
        return NULL;
    unsigned char *binary = zeros(bytes + 1, 1);
    if (binary != NULL && cl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) == CL_SUCCESS)
        return (char *)binary;
    free(binary);
    return NULL;
}

smartmem_status ptx_retarget(cl_program *program, cl_context context, const Device *device, const char *target,
                             const char *options, const char *launch) {
    char *ptx = binary_of(*program), *changed = NULL;
    cl_device handle = device->handle;
    cl_int code = CL_SUCCESS, state;
    smartmem_status status = ptx == NULL ? refused(launch, "the driver gives no binary, which is needed for", target)
                                         : ptx_with_target(ptx, target, launch, &changed);
    free(ptx);
    cl.clReleaseProgram(*program);
    *program = NULL;
    TRY(status);
    size_t bytes = strlen(changed) + 1;
    const unsigned char *from = (const unsigned char *)changed;
    cl_program made = cl.clCreateProgramWithBinary(context, 1, &handle, &bytes, &from, &state, &code);
    free(changed);
    if (made == NULL || code != CL_SUCCESS)
        return refused(launch, "the driver does not take PTX for", target);
    if (cl.clBuildProgram(made, 1, &handle, options, NULL, NULL) != CL_SUCCESS) {
        cl.clReleaseProgram(made);
        return refused(launch, "the driver does not build PTX for", target);
    }
    *program = made;
    return SMARTMEM_OK;
}
