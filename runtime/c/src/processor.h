/* The processor under a driver for CPUs: its name, and a unit that a process has to ask for. */
#ifndef SMARTMEM_PROCESSOR_H
#define SMARTMEM_PROCESSOR_H

#include <stdbool.h>

#include "opencl.h"

/* Replaces the name of a processor that is younger than PoCL's LLVM in PoCL's record of a device, as
 * smartmem_rules/runtime/processor/unknown.py does and explains; nothing where that is not needed or not possible. */
void processor_name(cl_device handle);

/* Whether the processor has a matrix unit for products of bytes (AMX) and this process may use it; asks the system for
 * the permission, as smartmem_rules/runtime/processor/matrix_unit.py does and explains. */
bool processor_has_byte_unit(void);

#endif
