/* The self-test of a plan on its device: docs/self_test.md. */
#ifndef SMARTMEM_SELFTEST_H
#define SMARTMEM_SELFTEST_H

#include "plan.h"

/* Asks each kernel of a plan whose programs are built, or takes what they said before on the same device and driver.
 * Kernels that are wrong are replaced in the plan's programs; SMARTMEM_WRONG_KERNEL where nothing the plan has is right.
 *
 * @param report gets a line for each kernel that was replaced, in memory that the caller frees; NULL if there is none
 */
smartmem_status self_test(Plan *plan, const build_order *order, char **report);

#endif
