/* Handles: numbers for objects, so that one that was closed or made up is an error and never a bad pointer. */
#ifndef SMARTMEM_HANDLES_H
#define SMARTMEM_HANDLES_H

#include <stdint.h>

typedef enum handle_kind { HANDLE_PLAN = 1, HANDLE_SESSION = 2 } handle_kind;

/* A number for an object; 0 where there is no memory. */
uint64_t handle_new(handle_kind kind, void *object);

/* The object, which stays until `handle_done`; NULL for what is no open handle of the kind. */
void *handle_use(handle_kind kind, uint64_t id);
void handle_done(uint64_t id);

/* Closes a handle, waits until nobody uses it, and gives the object; NULL for what is no open handle of the kind. */
void *handle_take(handle_kind kind, uint64_t id);

#endif
