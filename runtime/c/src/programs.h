/* From kernel texts to programs: many texts to a program, because each program costs a fixed time to build. */
#ifndef SMARTMEM_PROGRAMS_H
#define SMARTMEM_PROGRAMS_H

#include "device.h"
#include "index.h"

typedef struct built_text {
    uint32_t text;         /* number in the plan */
    const char *entry;     /* the kernel's name in the text */
    const char *launch;    /* the name of the first launch that runs it */
    char *options;         /* each ends with a zero byte */
    size_t options_bytes;
    uint32_t chunk, place; /* the program that it belongs to, and its number there */
    cl_program program;
    bool joined;           /* the program's name for the kernel has the number */
} built_text;

typedef struct Programs {
    built_text *texts;
    uint32_t count;
    uint32_t *of_launch; /* the text of each launch */
    uint32_t chunks;
} Programs;

typedef struct build_order {
    const plan_file *file;
    const plan_index *index;
    const Device *device;
    cl_context context;
    const smartmem_plan_options *options;
} build_order;

/* Builds each distinct text once; after an error there is nothing to close. */
smartmem_status programs_open(Programs *programs, const build_order *order);
void programs_close(Programs *programs);

/* Has another kernel run for launches: a spare, or where that is NULL the first launch's own, built without optimization.
 * What ran before stays built. Nothing changes where the driver's compiler refuses it. */
smartmem_status programs_replace(Programs *programs, const build_order *order, const uint32_t *launches, size_t count,
                                 const smartmem_format_Spare *spare);

/* A new kernel object, with arguments of its own, for a launch. */
smartmem_status programs_kernel(const Programs *programs, const plan_index *index, uint32_t launch, cl_kernel *kernel);

#endif
