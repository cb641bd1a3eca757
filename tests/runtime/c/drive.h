/* What the files of `drive` share. */
#ifndef DRIVE_H
#define DRIVE_H

#include <stdio.h>
#include <stdlib.h>

#include "smartmem.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("%s:%d: %s; %s\n", __FILE__, __LINE__, #condition, smartmem_last_error());                          \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Of the stub of OpenCL: its path, how many calls it had, how many of its objects are not released, and what adds to
 * its log. */
extern const char *stub;
extern long (*stub_calls)(void);
extern long (*stub_live)(void);
extern void (*stub_note)(const char *);

smartmem_plan_options with_stub(void);

void drive_pages(const char *path, int came_with_plan);
void drive_misuse(const char *path);
void drive_repeated(const char *path, int record, int count, char **extents);

#endif
