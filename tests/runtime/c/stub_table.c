/* A table as large as those of a driver's compiler, so that tests can look at what becomes of its pages. */

#include "stub_opencl.h"

EXPORT const unsigned char stub_table[STUB_TABLE_BYTES] = {7};
