/* What the files of the stub of OpenCL share. */
#ifndef STUB_OPENCL_H
#define STUB_OPENCL_H

#include <stdatomic.h>

#include "opencl.h"

#define EXPORT __attribute__((visibility("default")))

enum { ARGUMENTS = 4, ELEMENTS = 60, WRONG_ELEMENT = 37, RECORDED = 16, STUB_TABLE_BYTES = 1 << 21 };

typedef struct object {
    atomic_int users;
    char *data;
    size_t bytes;
    int owns;
    struct object *parent;
    char name[64]; /* of a kernel */
    struct object *arguments[ARGUMENTS];
    int recordable;           /* a queue into which launches are recorded, */
    struct object *recording; /* and where they go */
    struct object *recorded[RECORDED]; /* of a recording: kernels with the arguments of their time */
    int count, ended;
} object;

/* Notes a call of this name, and says whether it is the one that is to fail. */
int stub_fails(const char *name);
#define FAILS stub_fails(__func__)

/* A number that a variable of the environment gives, or another one. */
uint64_t stub_number(const char *variable, uint64_t otherwise);

void *stub_made(size_t bytes, void *host);
cl_int stub_released(void *given);
/* Computes a kernel with the arguments that it has. */
void stub_compute(const object *kernel);
/* Adds a kernel to a recording that is not ended. */
cl_int stub_record(object *recording, const object *kernel);

#endif
