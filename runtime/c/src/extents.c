#include "extents.h"

bool extent_known(const smartmem_format_Plan *plan, int64_t extent) {
    return extent >= 0 || (uint64_t)~extent < plan->formulas_count;
}

static bool factor_holds(const smartmem_format_Plan *plan, const smartmem_format_Factor *factor, size_t formula) {
    if (factor->has_dimension)
        return factor->dimension < plan->dimensions_count;
    bool backwards = (factor->dividend >= 0 || (uint64_t)~factor->dividend < formula) &&
                     (factor->divisor >= 0 || (uint64_t)~factor->divisor < formula);
    switch (factor->pair) {
    case smartmem_format_Pair_QUOTIENT:
        return backwards && factor->divisor != 0;
    case smartmem_format_Pair_LEAST:
    case smartmem_format_Pair_GREATEST:
        return backwards;
    }
    return false;
}

smartmem_status extents_check(const smartmem_format_Plan *plan) {
    for (size_t i = 0; i < plan->dimensions_count; ++i) {
        const smartmem_format_Dimension *one = plan->dimensions + i;
        if (one->low > one->high || one->high > INT32_MAX)
            return fail(SMARTMEM_BAD_PLAN, "the dimension %s has no range", text_of(one->name));
        if (one->has_counted)
            return fail(SMARTMEM_UNSUITABLE,
                        "the plan's launches count the extent %s while they run, which this library cannot follow; "
                        "run it from Python",
                        text_of(one->name));
    }
    for (size_t i = 0; i < plan->formulas_count; ++i)
        for (size_t t = 0; t < plan->formulas[i].terms_count; ++t) {
            const smartmem_format_Term *term = plan->formulas[i].terms + t;
            for (size_t f = 0; f < term->factors_count; ++f)
                if (!factor_holds(plan, term->factors + f, i))
                    return fail(SMARTMEM_BAD_PLAN, "the formula %zu depends on what is not there", i);
        }
    return SMARTMEM_OK;
}

int32_t extent_dimension(const smartmem_format_Plan *plan, int64_t extent) {
    if (extent >= 0)
        return -1;
    const smartmem_format_Formula *formula = plan->formulas + ~extent;
    if (formula->terms_count != 1 || formula->terms[0].coefficient != 1 || formula->terms[0].factors_count != 1 ||
        !formula->terms[0].factors[0].has_dimension)
        return -1;
    return (int32_t)formula->terms[0].factors[0].dimension;
}

/* Where a divisor is 0, an axis is empty and nothing depends on the quotient. */
static bool quotient(int64_t dividend, int64_t divisor, int64_t *result) {
    if (divisor < 0)
        return false;
    divisor = divisor ? divisor : 1;
    int64_t whole = dividend / divisor;
    *result = whole - (dividend % divisor < 0);
    return true;
}

static bool value_of(const smartmem_format_Factor *factor, const int64_t *formulas, int64_t *result) {
    int64_t left = extent_at(factor->dividend, formulas), right = extent_at(factor->divisor, formulas);
    switch (factor->pair) {
    case smartmem_format_Pair_QUOTIENT:
        return quotient(left, right, result);
    case smartmem_format_Pair_LEAST:
        *result = left < right ? left : right;
        return true;
    case smartmem_format_Pair_GREATEST:
        *result = left < right ? right : left;
        return true;
    }
    return false;
}

static bool evaluate(const smartmem_format_Formula *formula, const int64_t *dimensions, const int64_t *formulas,
                     int64_t *result) {
    int64_t total = 0;
    for (size_t t = 0; t < formula->terms_count; ++t) {
        const smartmem_format_Term *term = formula->terms + t;
        int64_t product = term->coefficient, value;
        for (size_t f = 0; f < term->factors_count; ++f) {
            const smartmem_format_Factor *factor = term->factors + f;
            if (factor->has_dimension)
                value = dimensions[factor->dimension];
            else if (!value_of(factor, formulas, &value))
                return false;
            if (__builtin_mul_overflow(product, value, &product))
                return false;
        }
        if (__builtin_add_overflow(total, product, &total))
            return false;
    }
    *result = total;
    return true;
}

smartmem_status extents_evaluate(const smartmem_format_Plan *plan, const int64_t *dimensions, int64_t *formulas) {
    for (size_t i = 0; i < plan->formulas_count; ++i)
        if (!evaluate(plan->formulas + i, dimensions, formulas, formulas + i))
            return fail(SMARTMEM_BAD_PLAN, "the formula %zu has no value for these extents", i);
    return SMARTMEM_OK;
}

int64_t extent_at(int64_t extent, const int64_t *formulas) {
    return extent >= 0 ? extent : formulas[~extent];
}

bool extents_product(const int64_t *extents, size_t rank, const int64_t *formulas, uint64_t unit, uint64_t *product) {
    uint64_t total = unit;
    for (size_t i = 0; i < rank; ++i) {
        int64_t extent = extent_at(extents[i], formulas);
        if (extent < 0 || __builtin_mul_overflow(total, (uint64_t)extent, &total))
            return false;
    }
    *product = total;
    return true;
}
