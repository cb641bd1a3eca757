/* Whether a device can run a plan, and whether the plan was made for devices like it. */
#ifndef SMARTMEM_FIT_H
#define SMARTMEM_FIT_H

#include "memory.h"

/* How near the profile that a plan was made for is to a device, the nearest last. */
typedef enum fit_kind {
    FIT_NONE,
    FIT_TYPE, /* it stands in for devices of this type */
    FIT_NAME  /* it names the device */
} fit_kind;

fit_kind fit_by_name(const plan_index *index, const Device *device);

/* SMARTMEM_UNSUITABLE, with the reason, where the device cannot run the plan: sizes of work-groups, images and buffers,
 * local memory, extensions. Nothing has been built or allocated for it then. */
smartmem_status fit_check(const memory_setting *setting);

#endif
