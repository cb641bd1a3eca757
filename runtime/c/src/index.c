#include "index.h"

#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "extents.h"
#include "pb_decode.h"
#include "probes.h"
#include "sections.h"

enum { MOST_IMAGE = 1 << 20, TEXEL_LANES = 4, SUMMED_AT_ONCE = 1 << 20 };

static const uint64_t MOST_BYTES = UINT64_C(1) << 46;

static smartmem_status wrong(const char *kind, const char *name, const char *what) {
    return fail(SMARTMEM_BAD_PLAN, "the plan is damaged: the %s %s %s", kind, text_of(name), what);
}

static bool is_storage(int element) {
    return element_bytes(element) != 0;
}

static bool extents_known(const plan_index *index, const int64_t *extents, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (!extent_known(index, extents[i]))
            return false;
    return true;
}

static bool is_number(const int64_t *extents, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (extents[i] < 0)
            return false;
    return true;
}

static bool image_fits(uint32_t width, uint32_t height, int storage, uint64_t bytes) {
    if (!width || !height || width > MOST_IMAGE || height > MOST_IMAGE)
        return false;
    if (storage != SMARTMEM_FLOAT16 && storage != SMARTMEM_FLOAT32)
        return false;
    return bytes == (uint64_t)width * height * TEXEL_LANES * element_bytes(storage);
}

static bool buffer_fits(const plan_tensor *tensor) {
    uint64_t bytes;
    if (!is_number(tensor->shape, tensor->shape_count))
        return true; /* looked at when the extents are known */
    return extents_product(tensor->shape, tensor->shape_count, NULL, element_bytes(tensor->storage), &bytes) &&
           bytes == tensor->bytes;
}

static smartmem_status check_place(const plan_index *index, const plan_tensor *tensor) {
    const smartmem_format_Place *place = &tensor->place;
    if (place->slot >= index->slots_count)
        return wrong("tensor", tensor->name, "lies in a piece of memory that is not there");
    const plan_slot *slot = index->slots + place->slot;
    bool image = tensor->layout.memory == smartmem_format_Memory_IMAGE;
    if (image != (slot->memory == smartmem_format_Memory_IMAGE))
        return wrong("tensor", tensor->name, "lies in a piece of memory of another kind");
    bool fits = image ? place->offset == 0 && tensor->width <= slot->width && tensor->height <= slot->height &&
                            tensor->storage == slot->storage
                      : place->offset <= slot->bytes && tensor->bytes <= slot->bytes - place->offset;
    return fits ? SMARTMEM_OK : wrong("tensor", tensor->name, "is larger than its piece of memory");
}

static smartmem_status check_constant(const plan_file *file, const plan_tensor *tensor) {
    const smartmem_format_Section *section = &tensor->packed.section;
    if (!tensor->has_packed || !tensor->packed.has_section)
        return wrong("constant", tensor->name, "has no values");
    if (!plan_file_holds(file, section->offset, section->size))
        return wrong("constant", tensor->name, "lies outside of the file");
    if (section->size != tensor->bytes)
        return wrong("constant", tensor->name, "has another size in memory");
    return SMARTMEM_OK;
}

static smartmem_status check_tensor(const plan_index *index, const plan_file *file, const plan_tensor *tensor) {
    if (!is_storage(tensor->element) || !is_storage(tensor->storage))
        return wrong("tensor", tensor->name, "has no element type");
    if (!extents_known(index, tensor->shape, tensor->shape_count) ||
        !extents_known(index, tensor->shown.extents, tensor->shown.extents_count))
        return wrong("tensor", tensor->name, "has a shape that is not there");
    if (tensor->bytes > MOST_BYTES)
        return wrong("tensor", tensor->name, "is too large");
    bool fits;
    switch (tensor->layout.memory) {
    case smartmem_format_Memory_IMAGE:
        fits = image_fits(tensor->width, tensor->height, tensor->storage, tensor->bytes);
        break;
    case smartmem_format_Memory_BUFFER:
    case smartmem_format_Memory_SCRATCH: fits = buffer_fits(tensor); break;
    default: fits = false;
    }
    if (!fits)
        return wrong("tensor", tensor->name, "has another size than its shape");
    if (tensor->has_place)
        TRY(check_place(index, tensor));
    return tensor->role == smartmem_format_Role_CONSTANT ? check_constant(file, tensor) : SMARTMEM_OK;
}

static smartmem_status check_border(const plan_index *index, uint32_t number, const char *kind) {
    if (number >= index->tensors_count)
        return wrong(kind, NULL, "is no tensor");
    const plan_tensor *tensor = index->tensors + number;
    size_t rank = tensor->has_shown ? tensor->shown.extents_count : tensor->shape_count;
    if (tensor->layout.memory != smartmem_format_Memory_BUFFER)
        return wrong(kind, tensor->name, "lies in no buffer");
    if (rank > SMARTMEM_MAX_RANK || tensor->shape_count > SMARTMEM_MAX_RANK)
        return wrong(kind, tensor->name, "has too many axes");
    if (!elements_convert(tensor->element, tensor->storage) || !elements_convert(tensor->storage, tensor->element))
        return wrong(kind, tensor->name, "has an element type that its memory cannot hold");
    return SMARTMEM_OK;
}

static bool is_output(const plan_index *index, uint32_t tensor) {
    for (size_t i = 0; i < index->outputs_count; ++i)
        if (index->outputs[i] == tensor)
            return true;
    return false;
}

static smartmem_status check_count(const plan_index *index, const smartmem_format_Count *count) {
    if (count->output >= index->tensors_count || count->count >= index->tensors_count)
        return wrong("count", NULL, "is of no tensor");
    const plan_tensor *output = index->tensors + count->output, *scalar = index->tensors + count->count;
    size_t rank = output->has_shown ? output->shown.extents_count : output->shape_count;
    uint64_t elements;
    bool integer = scalar->element == smartmem_format_Element_INT64 || scalar->element == smartmem_format_Element_INT32;
    if (count->axis >= rank || !integer || !is_number(scalar->shape, scalar->shape_count) ||
        !extents_product(scalar->shape, scalar->shape_count, NULL, 1, &elements) || elements != 1)
        return wrong("count", scalar->name, "is no extent");
    bool both = is_output(index, count->output) && is_output(index, count->count);
    return both ? SMARTMEM_OK : wrong("count", scalar->name, "is no output");
}

static smartmem_status check_endings(const plan_index *index) {
    uint32_t number = index->endings.number;
    if (!index->has_endings)
        return SMARTMEM_OK;
    if (!is_output(index, number) || index->tensors[number].shape_count ||
        index->tensors[number].element != smartmem_format_Element_INT64)
        return wrong("tensor", number < index->tensors_count ? index->tensors[number].name : NULL,
                     "cannot tell whether loops have ended");
    return SMARTMEM_OK;
}

static bool is_identifier(const char *text) {
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    size_t first = strspn(text, LETTERS);
    return first && strlen(text) < 256 && text[first + strspn(text + first, "0123456789abcdefghijklmnopqrstuvwxyz"
                                                                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ_")] == 0;
}

/* Where a launch notes that its work-groups have waited in vain: behind the elements of a tensor, in what all have more. */
static smartmem_status check_waiting(const plan_index *index, const plan_launch *launch) {
    const smartmem_format_Waiting *waiting = &launch->waiting;
    if (waiting->noted >= launch->arguments_count || !launch->arguments[waiting->noted].written || !waiting->steps_count)
        return wrong("launch", launch->name, "has no room for a note");
    uint64_t bytes = index->tensors[launch->arguments[waiting->noted].tensor].bytes;
    uint64_t begin = (uint64_t)waiting->element * sizeof(int32_t);
    if (begin < bytes || begin + sizeof(int32_t) > bytes + PLAN_SLACK)
        return wrong("launch", launch->name, "has no room for a note");
    return SMARTMEM_OK;
}

static smartmem_status check_launch(const plan_index *index, const plan_launch *launch) {
    if (launch->text >= index->texts_count || !is_identifier(text_of(launch->entry)))
        return wrong("launch", launch->name, "has no kernel");
    for (size_t i = 0; i < launch->arguments_count; ++i)
        if (launch->arguments[i].tensor >= index->tensors_count)
            return wrong("launch", launch->name, "takes a tensor that is not there");
    for (size_t i = 0; i < launch->dimensions_count; ++i)
        if (launch->dimensions[i] >= index->dimensions_count)
            return wrong("launch", launch->name, "takes a dimension that is not there");
    size_t rank = launch->global_size_count;
    if (rank < 1 || rank > 3 || (launch->local_size_count && launch->local_size_count != rank) ||
        !extents_known(index, launch->global_size, rank))
        return wrong("launch", launch->name, "has no size");
    for (size_t i = 0; i < launch->spares_count; ++i)
        if (launch->spares[i].text >= index->texts_count || !is_identifier(text_of(launch->spares[i].entry)))
            return wrong("launch", launch->name, "has a spare without a kernel");
    for (size_t i = 0; i < launch->local_size_count; ++i)
        if (!launch->local_size[i])
            return wrong("launch", launch->name, "has work-groups of nothing");
    return launch->has_waiting ? check_waiting(index, launch) : SMARTMEM_OK;
}

static smartmem_status check_slot(const plan_slot *slot) {
    bool image = slot->memory == smartmem_format_Memory_IMAGE;
    if ((!image && slot->memory != smartmem_format_Memory_BUFFER) || slot->bytes > MOST_BYTES ||
        (image && !image_fits(slot->width, slot->height, slot->storage,
                              (uint64_t)slot->width * slot->height * TEXEL_LANES * element_bytes(slot->storage))))
        return wrong("piece of memory", NULL, "is none");
    return SMARTMEM_OK;
}

/* The report is for people, but where it is damaged the rest may be. */
static smartmem_status check_report(const plan_index *index, const plan_file *file) {
    const smartmem_format_Section *report = &index->report;
    if (!index->has_report || !plan_file_holds(file, report->offset, report->size) ||
        plan_file_sum(file, report->offset, report->size) != report->sum)
        return wrong("report", NULL, "is another one than the index says");
    return SMARTMEM_OK;
}

static smartmem_status check_binary(const plan_file *file, const smartmem_format_Binary *binary) {
    const smartmem_format_Section *section = &binary->section;
    if (!binary->has_section || !section->size || !plan_file_holds(file, section->offset, section->size) ||
        plan_file_sum(file, section->offset, section->size) != section->sum)
        return wrong("compiled program", binary->key, "is another one than the index says");
    return SMARTMEM_OK;
}

static smartmem_status check(const plan_index *index, const plan_file *file) {
    TRY(check_report(index, file));
    TRY(extents_check(index));
    for (size_t i = 0; i < index->slots_count; ++i)
        TRY(check_slot(index->slots + i));
    for (size_t i = 0; i < index->tensors_count; ++i)
        TRY(check_tensor(index, file, index->tensors + i));
    for (size_t i = 0; i < index->inputs_count; ++i)
        TRY(check_border(index, index->inputs[i], "input"));
    for (size_t i = 0; i < index->outputs_count; ++i)
        TRY(check_border(index, index->outputs[i], "output"));
    for (size_t i = 0; i < index->counts_count; ++i)
        TRY(check_count(index, index->counts + i));
    TRY(check_endings(index));
    for (size_t i = 0; i < index->launches_count; ++i)
        TRY(check_launch(index, index->launches + i));
    for (size_t i = 0; i < index->binaries_count; ++i)
        TRY(check_binary(file, index->binaries + i));
    TRY(probes_check(index, file));
    return sections_check(index, file);
}

smartmem_status index_open(plan_index *index, const plan_file *file) {
    *index = (plan_index)smartmem_format_Plan_init_zero;
    pb_istream_t stream = pb_istream_from_buffer(file->data + file->index_offset, file->index_bytes);
    if (!pb_decode(&stream, smartmem_format_Plan_fields, index))
        return fail(SMARTMEM_BAD_PLAN, "the plan is damaged: %s", PB_GET_ERROR(&stream));
    smartmem_status status = check(index, file);
    if (status != SMARTMEM_OK)
        index_close(index);
    return status;
}

void index_close(plan_index *index) {
    pb_release(smartmem_format_Plan_fields, index);
}

void index_let_go(plan_index *index, const plan_file *file) {
    for (size_t i = 0; i < index->texts_count; ++i) {
        free(index->texts[i]);
        index->texts[i] = NULL;
    }
    plan_file_rest_part(file, file->index_offset, file->index_bytes);
    for (size_t i = 0; i < index->binaries_count; ++i)
        plan_file_rest_part(file, index->binaries[i].section.offset, index->binaries[i].section.size);
    for (size_t i = 0; i < index->probes_count; ++i) {
        const smartmem_format_Probe *probe = index->probes + i;
        for (size_t k = 0; k < probe->fillings_count; ++k)
            if (probe->fillings[k].has_rows)
                plan_file_rest_part(file, probe->fillings[k].rows.different.offset, probe->fillings[k].rows.different.size);
        for (size_t k = 0; k < probe->answers_count; ++k)
            plan_file_rest_part(file, probe->answers[k].rows.different.offset, probe->answers[k].rows.different.size);
    }
}

/* The sum of a constant, whose pages are given back part by part: the driver needs its memory at this time, and no run
 * has begun. */
static uint64_t sum_of_constant(const plan_file *file, const smartmem_format_Section *section) {
    uint64_t total = 0;
    for (uint64_t at = 0; at < section->size; at += SUMMED_AT_ONCE) {
        uint64_t left = section->size - at, bytes = left < SUMMED_AT_ONCE ? left : SUMMED_AT_ONCE;
        plan_file_wake_part(file, section->offset + at, bytes);
        total += plan_file_sum(file, section->offset + at, bytes);
        plan_file_rest_part(file, section->offset + at, bytes);
    }
    return total;
}

smartmem_status index_check_constants(const plan_index *index, const plan_file *file) {
    for (size_t i = 0; i < index->tensors_count; ++i) {
        const smartmem_format_Section *section = &index->tensors[i].packed.section;
        if (index->tensors[i].role != smartmem_format_Role_CONSTANT)
            continue;
        if (sum_of_constant(file, section) != section->sum)
            return wrong("constant", index->tensors[i].name, "has another checksum");
    }
    return SMARTMEM_OK;
}

void index_wake_constants(const plan_index *index, const plan_file *file) {
    for (size_t i = 0; i < index->tensors_count; ++i)
        if (index->tensors[i].role == smartmem_format_Role_CONSTANT)
            plan_file_wake_part(file, index->tensors[i].packed.section.offset, index->tensors[i].packed.section.size);
}

bool index_written(const plan_index *index, uint32_t tensor) {
    for (size_t i = 0; i < index->launches_count; ++i)
        for (size_t a = 0; a < index->launches[i].arguments_count; ++a)
            if (index->launches[i].arguments[a].tensor == tensor && index->launches[i].arguments[a].written)
                return true;
    return false;
}
