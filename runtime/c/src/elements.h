/* Element types: their sizes, and the ways between the model's and the device's. */
#ifndef SMARTMEM_ELEMENTS_H
#define SMARTMEM_ELEMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "smartmem.h"

/* Bytes of an element on the host; 0 for what is no element type. */
size_t element_bytes(int element);

/* Whether arrays of the two types can be converted into each other. */
bool elements_convert(int from, int to);

/* Whether the conversion changes no byte. */
bool elements_same(int from, int to);

void elements_copy(void *to, int to_element, const void *from, int from_element, size_t count);

#endif
