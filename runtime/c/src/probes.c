#include "probes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "elements.h"

enum { UNSET_BYTE = 0xFF };

static smartmem_status wrong(const char *what) {
    return fail(SMARTMEM_BAD_PLAN, "the plan is damaged: a probe %s", what);
}

static const plan_launch *launch_of(const plan_index *index, const plan_probe *probe) {
    return index->launches + probe->launches[0];
}

const plan_tensor *probe_tensor(const plan_index *index, const plan_probe *probe, uint32_t argument) {
    return index->tensors + launch_of(index, probe)->arguments[argument].tensor;
}

static bool is_closed(const int64_t *extents, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (extents[i] < 0)
            return false;
    return true;
}

static smartmem_status check_rows(const plan_file *file, const smartmem_format_Rows *rows, const plan_tensor *tensor) {
    uint64_t row = (uint64_t)rows->width * element_bytes(rows->element);
    const smartmem_format_Section *numbers = &rows->numbers;
    if (!row || element_bytes(rows->element) != element_bytes(tensor->storage) || !rows->has_different ||
        !rows->has_numbers || !plan_file_holds(file, rows->different.offset, rows->different.size) ||
        !plan_file_holds(file, numbers->offset, numbers->size) || rows->different.size % row ||
        rows->different.size / row != rows->count || numbers->size % sizeof(int32_t) || tensor->bytes % row ||
        numbers->size / sizeof(int32_t) != tensor->bytes / row)
        return wrong("has contents of another size than its tensor");
    return SMARTMEM_OK;
}

static smartmem_status check_filling(const plan_index *index, const plan_file *file, const plan_probe *probe,
                                     uint32_t argument) {
    const smartmem_format_Filling *filling = probe->fillings + argument;
    const plan_tensor *tensor = probe_tensor(index, probe, argument);
    if (!is_closed(tensor->shape, tensor->shape_count))
        return wrong("is of a tensor whose size is open");
    switch (filling->kind) {
    case smartmem_format_FillingKind_GIVEN:
        return filling->has_rows ? check_rows(file, &filling->rows, tensor) : wrong("has no contents");
    case smartmem_format_FillingKind_SIGNS:
    case smartmem_format_FillingKind_OWN:
        return tensor->role == smartmem_format_Role_CONSTANT ? SMARTMEM_OK : wrong("takes what is no constant");
    case smartmem_format_FillingKind_UNSET: return SMARTMEM_OK;
    default: return wrong("has contents of no known kind");
    }
}

static smartmem_status check_probe(const plan_index *index, const plan_file *file, const plan_probe *probe) {
    if (!probe->launches_count)
        return wrong("is for no launch");
    for (size_t i = 0; i < probe->launches_count; ++i)
        if (probe->launches[i] >= index->launches_count ||
            index->launches[probe->launches[i]].arguments_count != launch_of(index, probe)->arguments_count)
            return wrong("is for a launch that is not there");
    const plan_launch *launch = launch_of(index, probe);
    if (probe->fillings_count != launch->arguments_count || launch->dimensions_count ||
        !is_closed(launch->global_size, launch->global_size_count))
        return wrong("has contents for another kernel");
    for (uint32_t i = 0; i < probe->fillings_count; ++i)
        TRY(check_filling(index, file, probe, i));
    for (size_t i = 0; i < probe->answers_count; ++i) {
        const smartmem_format_Answer *answer = probe->answers + i;
        if (answer->argument >= launch->arguments_count || !answer->has_rows)
            return wrong("expects what is not there");
        TRY(check_rows(file, &answer->rows, probe_tensor(index, probe, answer->argument)));
    }
    return SMARTMEM_OK;
}

smartmem_status probes_check(const plan_index *index, const plan_file *file) {
    for (size_t i = 0; i < index->probes_count; ++i)
        TRY(check_probe(index, file, index->probes + i));
    return SMARTMEM_OK;
}

/* Writes out rows, whose sums are compared now: they are read once at most. */
static smartmem_status expand(const plan_file *file, const smartmem_format_Rows *rows, void *to) {
    const smartmem_format_Section *numbers = &rows->numbers, *different = &rows->different;
    size_t row = (size_t)rows->width * element_bytes(rows->element);
    if (plan_file_sum(file, numbers->offset, numbers->size) != numbers->sum ||
        plan_file_sum(file, different->offset, different->size) != different->sum)
        return wrong("has another checksum");
    for (uint64_t i = 0; i < numbers->size / sizeof(int32_t); ++i) {
        int32_t number;
        memcpy(&number, file->data + numbers->offset + i * sizeof number, sizeof number);
        if (number < 0 || (uint32_t)number >= rows->count)
            return wrong("has a row that is not there");
        memcpy((uint8_t *)to + i * row, file->data + different->offset + (uint64_t)number * row, row);
    }
    return SMARTMEM_OK;
}

/* The bits of an element, and which of them is the highest of the mantissa. */
static uint64_t bits_of(const uint8_t *at, size_t bytes) {
    uint64_t bits = 0;
    memcpy(&bits, at, bytes); /* all systems that OpenCL runs on are little-endian */
    return bits;
}

/* Replaces a float by one or two times 2^exponent, with its sign; zero stays zero. */
static void sign(uint8_t *at, int element, int exponent) {
    size_t bytes = element_bytes(element);
    unsigned mantissa = bytes == 2 ? 9 : bytes == 4 ? 22 : 51;
    uint64_t bits = bits_of(at, bytes), minus = bits >> (8 * bytes - 1);
    if (!(bits << (64 - 8 * bytes + 1)))
        return;
    double size = ldexp(1.0 + (double)(bits >> mantissa & 1), exponent), value = minus ? -size : size;
    float narrow = (float)value;
    if (element == SMARTMEM_FLOAT64)
        memcpy(at, &value, sizeof value);
    else
        elements_copy(at, element, &narrow, SMARTMEM_FLOAT32, 1);
}

smartmem_status probe_contents(const plan_index *index, const plan_file *file, const plan_probe *probe,
                               uint32_t argument, void **contents) {
    const smartmem_format_Filling *filling = probe->fillings + argument;
    const plan_tensor *tensor = probe_tensor(index, probe, argument);
    size_t bytes = (size_t)tensor->bytes, step = element_bytes(tensor->storage);
    bool floats = tensor->storage == smartmem_format_Element_FLOAT16 ||
                  tensor->storage == smartmem_format_Element_FLOAT32 || tensor->storage == smartmem_format_Element_FLOAT64;
    uint8_t *made = *contents = malloc(bytes + 1);
    if (made == NULL)
        return fail(SMARTMEM_NO_MEMORY, "there is too little memory for the self-test");
    if (filling->kind == smartmem_format_FillingKind_GIVEN)
        return expand(file, &filling->rows, made);
    if (filling->kind == smartmem_format_FillingKind_UNSET)
        memset(made, UNSET_BYTE, bytes);
    else
        memcpy(made, file->data + tensor->packed.section.offset, bytes);
    if (filling->kind == smartmem_format_FillingKind_SIGNS && floats)
        for (size_t i = 0; i < bytes; i += step)
            sign(made + i, (int)tensor->storage, filling->exponent);
    return SMARTMEM_OK;
}

/* An element that is a float, or an integer that a double holds without rounding. */
static double value_of(const uint8_t *at, int element) {
    float narrow;
    double wide;
    switch (element) {
    case SMARTMEM_FLOAT64: memcpy(&wide, at, sizeof wide); return wide;
    case SMARTMEM_FLOAT32: memcpy(&narrow, at, sizeof narrow); return narrow;
    case SMARTMEM_INT8: return (int8_t)at[0];
    case SMARTMEM_INT16: return (int16_t)bits_of(at, 2);
    case SMARTMEM_INT32: return (int32_t)bits_of(at, 4);
    case SMARTMEM_INT64: return (double)(int64_t)bits_of(at, 8);
    case SMARTMEM_FLOAT16:
    case SMARTMEM_BFLOAT16: elements_copy(&narrow, SMARTMEM_FLOAT32, at, element, 1); return narrow;
    default: return (double)bits_of(at, element_bytes(element));
    }
}

static bool is_right(const uint8_t *found, const uint8_t *expected, int element, double bound) {
    if (memcmp(found, expected, element_bytes(element)) == 0)
        return true;
    double ours = value_of(found, element), wanted = value_of(expected, element);
    bool wide = element == SMARTMEM_INT64 || element == SMARTMEM_UINT64; /* more bits than a double has */
    return isnan(wanted) || (!wide && (ours == wanted || fabs(ours - wanted) <= bound));
}

smartmem_status probe_compare(const plan_index *index, const plan_file *file, const plan_probe *probe,
                              const smartmem_format_Answer *answer, const void *found, Difference *difference) {
    const plan_tensor *tensor = probe_tensor(index, probe, answer->argument);
    int element = (int)tensor->storage;
    size_t step = element_bytes(element);
    uint8_t *expected = malloc((size_t)tensor->bytes + 1);
    if (expected == NULL)
        return fail(SMARTMEM_NO_MEMORY, "there is too little memory for the self-test");
    smartmem_status status = expand(file, &answer->rows, expected);
    *difference = (Difference){.elements = tensor->bytes / step};
    for (uint64_t i = 0; status == SMARTMEM_OK && i < difference->elements; ++i) {
        const uint8_t *ours = (const uint8_t *)found + i * step, *wanted = expected + i * step;
        if (is_right(ours, wanted, element, answer->bound))
            continue;
        if (!difference->count++) {
            difference->place = i;
            difference->found = value_of(ours, element);
            difference->expected = value_of(wanted, element);
        }
    }
    free(expected);
    return status;
}
