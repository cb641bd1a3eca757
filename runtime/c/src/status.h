/* Statuses and the words for what was wrong. */
#ifndef SMARTMEM_STATUS_H
#define SMARTMEM_STATUS_H

#include "smartmem.h"

enum { ERROR_TEXT = 2048 };

#if defined(__GNUC__)
#define PRINTS __attribute__((format(printf, 2, 3)))
#else
#define PRINTS
#endif

/* Keeps the text for the calling thread, and gives the status back. */
smartmem_status fail(smartmem_status status, const char *format, ...) PRINTS;

/* Leaves the function with the status of a call that failed. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        smartmem_status tried_ = (call);                                                                               \
        if (tried_ != SMARTMEM_OK)                                                                                     \
            return tried_;                                                                                             \
    } while (0)

/* Memory of zeros for `count` things; at least one byte, so that NULL always means that there is no memory. */
void *zeros(size_t count, size_t size);

/* NULL as the empty text. */
const char *text_of(const char *text);

#endif
