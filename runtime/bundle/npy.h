/* Arrays in files: numpy's .npy, and raw elements. */
#ifndef NPY_H
#define NPY_H

#include <smartmem.h>

typedef struct array {
    char *data; /* to be freed */
    size_t bytes;
    int64_t shape[SMARTMEM_MAX_RANK];
    size_t rank;
    int has_shape; /* 0: of a raw file */
} array;

/* Reads a file, whose elements have to be of a type. Gives NULL, or what is wrong with it. */
const char *npy_read(const char *path, smartmem_element element, array *read);

/* Writes an output as .npy. Gives NULL, or what is wrong. */
const char *npy_write(const char *path, const smartmem_output *output);

#endif
