/* Extents of a plan: numbers, and formulas over its open dimensions. */
#ifndef SMARTMEM_EXTENTS_H
#define SMARTMEM_EXTENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "plan.pb.h"
#include "status.h"

/* Checks what the formulas of a plan point to. */
smartmem_status extents_check(const smartmem_format_Plan *plan);

/* Whether an extent is a number or one of the plan's formulas. */
bool extent_known(const smartmem_format_Plan *plan, int64_t extent);

/* The open dimension that an extent is, else -1. */
int32_t extent_dimension(const smartmem_format_Plan *plan, int64_t extent);

/* Gives the number that each formula is for extents of the dimensions. */
smartmem_status extents_evaluate(const smartmem_format_Plan *plan, const int64_t *dimensions, int64_t *formulas);

/* The number that an extent is. */
int64_t extent_at(int64_t extent, const int64_t *formulas);

/* The product of the extents and of `unit`; not true where it does not fit, or where an extent is negative. */
bool extents_product(const int64_t *extents, size_t rank, const int64_t *formulas, uint64_t unit, uint64_t *product);

#endif
