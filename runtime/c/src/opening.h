/* Opens plans on devices: what a device can run is built, asked and given its constants. */
#ifndef SMARTMEM_OPENING_H
#define SMARTMEM_OPENING_H

#include "plan.h"

/* Opens a plan of a file, which it takes over in any case. */
smartmem_status plan_open(Plan **opened, plan_file *file, const smartmem_plan_options *options);

/* Whether the plan's device can run it: see `fit_check`. */
smartmem_status plan_fits(const Plan *plan);

/* Starts a plan that was read on the device that was put into it, and that it fits. After an error the plan is still to be
 * released. */
smartmem_status plan_start(Plan *plan, const smartmem_plan_options *options);

#endif
