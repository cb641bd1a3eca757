/* Asks a kernel one question: each argument in memory of its own, one launch, and what came out. */
#ifndef SMARTMEM_ASKING_H
#define SMARTMEM_ASKING_H

#include "plan.h"
#include "probes.h"

/* Asks the kernel of a probe's first launch as the programs have it now.
 *
 * @param said gets what is wrong in words, empty where the kernel is right; a driver that refuses the kernel is wrong, too
 * @return an error where the question could not be asked: too little memory, a damaged plan
 */
smartmem_status ask(const Plan *plan, cl_queue queue, const plan_probe *probe, char said[ERROR_TEXT]);

#endif
