#include "pieces.h"

#include <stdlib.h>

size_t memory_alignment(const memory_setting *setting) {
    size_t most = BLOCK_ALIGNMENT;
    most = setting->device->alignment > most ? setting->device->alignment : most;
    return setting->file->alignment > most ? setting->file->alignment : most;
}

static Piece of_slot(const plan_slot *slot) {
    return (Piece){.image = slot->memory == smartmem_format_Memory_IMAGE,
                   .bytes = slot->bytes,
                   .width = slot->width,
                   .height = slot->height,
                   .storage = slot->storage};
}

static void take_slots(Pieces *pieces, const plan_index *index) {
    pieces->count = index->slots_count;
    for (size_t i = 0; i < index->slots_count; ++i)
        pieces->all[i] = of_slot(index->slots + i);
    for (size_t t = 0; t < index->tensors_count; ++t) {
        const plan_tensor *tensor = index->tensors + t;
        if (!tensor->has_place)
            continue;
        pieces->of_tensor[t] = tensor->place.slot;
        pieces->offset[t] = tensor->place.offset;
        pieces->all[tensor->place.slot].parted |= tensor->place.offset != 0;
    }
}

static void take_places(Pieces *pieces, const plan_index *index) {
    for (size_t t = 0; t < index->tensors_count; ++t) {
        const plan_tensor *tensor = index->tensors + t;
        if (!tensor->has_place)
            continue;
        size_t at = 0;
        while (at < pieces->count && (pieces->all[at].place.slot != tensor->place.slot ||
                                      pieces->all[at].place.offset != tensor->place.offset))
            ++at;
        Piece *one = pieces->all + at;
        if (at == pieces->count) {
            *one = of_slot(index->slots + tensor->place.slot);
            one->place = tensor->place;
            one->bytes = one->image ? one->bytes : 0;
            ++pieces->count;
        }
        if (!one->image && tensor->bytes > one->bytes)
            one->bytes = tensor->bytes;
        pieces->of_tensor[t] = (uint32_t)at;
    }
}

smartmem_status pieces_open(Pieces *pieces, const memory_setting *setting) {
    const plan_index *index = setting->index;
    size_t most = index->slots_count > index->tensors_count ? index->slots_count : index->tensors_count;
    *pieces = (Pieces){.all = zeros(most, sizeof *pieces->all),
                              .of_tensor = zeros(index->tensors_count, sizeof *pieces->of_tensor),
                              .offset = zeros(index->tensors_count, sizeof *pieces->offset),
                              .alignment = memory_alignment(setting)};
    if (pieces->all == NULL || pieces->of_tensor == NULL || pieces->offset == NULL) {
        pieces_close(pieces);
        return fail(SMARTMEM_NO_MEMORY, "there is too little memory");
    }
    if (device_has_workaround(index, setting->device, "whole_buffers"))
        take_places(pieces, index);
    else
        take_slots(pieces, index);
    return SMARTMEM_OK;
}

void pieces_close(Pieces *pieces) {
    free(pieces->all);
    free(pieces->of_tensor);
    free(pieces->offset);
    *pieces = (Pieces){0};
}

uint64_t piece_block_bytes(const Pieces *pieces, const Piece *piece) {
    uint64_t step = pieces->alignment;
    return piece->image ? 0 : (piece->bytes + PLAN_SLACK + step - 1) / step * step;
}

uint64_t pieces_block_bytes(const Pieces *pieces) {
    uint64_t total = 0;
    for (size_t i = 0; i < pieces->count; ++i)
        total += piece_block_bytes(pieces, pieces->all + i);
    return total;
}
