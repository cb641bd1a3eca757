#include "sections.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTE = 128 }; /* behind the header */

typedef struct part {
    uint64_t begin, end;
} part;

typedef struct parts {
    const plan_file *file;
    part *those;
    size_t count;
} parts;

/* Numbers that point out of the file are looked at where they are used: here they only end with it. */
static void add(parts *all, uint64_t offset, uint64_t bytes) {
    uint64_t size = all->file->bytes, begin = offset < size ? offset : size;
    all->those[all->count++] = (part){begin, bytes < size - begin ? begin + bytes : size};
}

static void add_section(parts *all, const smartmem_format_Section *section) {
    add(all, section->offset, section->size);
}

static void add_rows(parts *all, const smartmem_format_Rows *rows) {
    add_section(all, &rows->different);
    add_section(all, &rows->numbers);
}

static size_t most_parts(const plan_index *index) {
    size_t most = 3 + index->tensors_count + index->binaries_count; /* report, index, end of the file */
    for (size_t i = 0; i < index->probes_count; ++i)
        most += 2 * ((size_t)index->probes[i].fillings_count + index->probes[i].answers_count);
    return most;
}

static void add_all(parts *all, const plan_index *index) {
    add(all, all->file->bytes, 0);
    add(all, all->file->index_offset, all->file->index_bytes);
    add_section(all, &index->report);
    for (size_t i = 0; i < index->tensors_count; ++i)
        if (index->tensors[i].has_packed)
            add_section(all, &index->tensors[i].packed.section);
    for (size_t i = 0; i < index->binaries_count; ++i)
        add_section(all, &index->binaries[i].section);
    for (size_t i = 0; i < index->probes_count; ++i) {
        const smartmem_format_Probe *probe = index->probes + i;
        for (size_t k = 0; k < probe->fillings_count; ++k)
            add_rows(all, &probe->fillings[k].rows);
        for (size_t k = 0; k < probe->answers_count; ++k)
            add_rows(all, &probe->answers[k].rows);
    }
}

static int by_begin(const void *one, const void *other) {
    uint64_t a = ((const part *)one)->begin, b = ((const part *)other)->begin;
    return a < b ? -1 : a > b;
}

static bool are_zeros(const uint8_t *data, uint64_t bytes) {
    return !bytes || (!data[0] && memcmp(data, data + 1, (size_t)bytes - 1) == 0);
}

smartmem_status sections_check(const plan_index *index, const plan_file *file) {
    parts all = {file, malloc(most_parts(index) * sizeof(part)), 0};
    if (all.those == NULL)
        return fail(SMARTMEM_NO_MEMORY, "there is too little memory");
    add_all(&all, index);
    qsort(all.those, all.count, sizeof(part), by_begin);
    uint64_t end = FIRST_BYTE;
    bool zeros = true;
    for (size_t i = 0; zeros && i < all.count; ++i) {
        if (all.those[i].begin > end)
            zeros = are_zeros(file->data + end, all.those[i].begin - end);
        if (all.those[i].end > end)
            end = all.those[i].end;
    }
    free(all.those);
    return zeros ? SMARTMEM_OK : fail(SMARTMEM_BAD_PLAN, "the plan is damaged: bytes of no section are not zeros");
}
