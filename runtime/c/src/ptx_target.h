/* Kernels whose PTX is for another target than the one for which NVIDIA's driver compiles OpenCL C: the texts have the
 * instructions that only this target has behind `//@`, a comment of PTX (codegen/matrix_wgmma.cl). */
#ifndef SMARTMEM_PTX_TARGET_H
#define SMARTMEM_PTX_TARGET_H

#include "device.h"
#include "opencl.h"
#include "status.h"

/* The option with which a text compiles that has such instructions. */
#define PTX_TARGET_IS_SET "-DSMR_TARGET_IS_SET"

/* The target that options ask for, each of which ends in a zero; NULL for the driver's own. */
const char *ptx_target(const char *options, size_t bytes);

/* The driver's PTX, which ends in a zero, for another target. The caller frees it.
 * @param launch the kernel's name, for messages
 */
smartmem_status ptx_with_target(const char *ptx, const char *target, const char *launch, char **changed);

/* Puts a program for another target in the place of one that the driver has compiled. */
smartmem_status ptx_retarget(cl_program *program, cl_context context, const Device *device, const char *target,
                             const char *options, const char *launch);

#endif
