/* The one of several plans that a device runs. */
#ifndef SMARTMEM_CHOICE_H
#define SMARTMEM_CHOICE_H

#include "plan.h"

enum { MOST_PLANS = 64 };

/* Opens the plan that is nearest to the device: of those that it can run the first one whose profile names the device,
 * else the first one whose profile stands in for its type.
 *
 * @param plans that were read; they stay the caller's, but for the one that is opened
 * @param number gets the place of that one
 */
smartmem_status choice_open(Plan **plans, size_t count, const smartmem_plan_options *options, size_t *number);

#endif
