/* A processor that is younger than PoCL's LLVM gets a name that this LLVM knows. */
#ifndef SMARTMEM_PROCESSOR_H
#define SMARTMEM_PROCESSOR_H

#include "opencl.h"

/* Replaces the name of an unknown processor in PoCL's record of a device, which it has to be, as
 * smartmem_rules/runtime/unknown_processor.py does and explains; nothing where that is not needed or not possible. */
void processor_name(cl_device handle);

#endif
