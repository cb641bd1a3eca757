#include "memory.h"

#include <stdlib.h>

#include "host_memory.h"

static bool is_image(const plan_tensor *tensor) {
    return tensor->layout.memory == smartmem_format_Memory_IMAGE;
}

/* Whether a tensor is a constant that all sessions share: one that no kernel writes. */
static bool is_shared(const plan_index *index, uint32_t tensor) {
    return index->tensors[tensor].role == smartmem_format_Role_CONSTANT && !index_written(index, tensor);
}

/* Whether the device can compute with a constant where it lies in the file. */
static bool is_mapped(const memory_setting *setting, const plan_tensor *tensor) {
    uintptr_t place = (uintptr_t)setting->file->data + tensor->packed.section.offset;
    return setting->device->host_memory && !is_image(tensor) && place % memory_alignment(setting) == 0;
}

static const void *values_of(const memory_setting *setting, const plan_tensor *tensor) {
    return setting->file->data + tensor->packed.section.offset;
}

/* Refuses sizes that the device cannot allocate: one of them, or all of them in the host's memory. */
static smartmem_status need(const memory_setting *setting, uint64_t largest, uint64_t total) {
    const Device *device = setting->device;
    if (largest + PLAN_SLACK > device->largest_allocation)
        return fail(SMARTMEM_UNSUITABLE, "%s allocates at most %llu bytes at once; the plan needs %llu",
                    device->names.name, (unsigned long long)device->largest_allocation, (unsigned long long)largest);
    uint64_t free_bytes = device->host_memory ? host_memory_available() : UINT64_MAX;
    if (total > free_bytes)
        return fail(SMARTMEM_NO_MEMORY, "the plan needs %llu MiB more, and this process may take %llu",
                    (unsigned long long)(total >> 20), (unsigned long long)(free_bytes >> 20));
    return SMARTMEM_OK;
}

static smartmem_status make_image(const memory_setting *setting, uint32_t width, uint32_t height, uint32_t storage,
                                  cl_memory *made) {
    cl_image_format format = {CL_RGBA, storage == smartmem_format_Element_FLOAT16 ? CL_HALF_FLOAT : CL_FLOAT};
    cl_image_desc description = {.type = CL_MEM_OBJECT_IMAGE2D, .width = width, .height = height};
    cl_int code;
    *made = cl.clCreateImage(setting->context, CL_MEM_READ_WRITE, &format, &description, NULL, &code);
    return *made == NULL ? opencl_failed(code, "the device gives no image") : SMARTMEM_OK;
}

static smartmem_status make_buffer(const memory_setting *setting, uint64_t bytes, cl_bits flags, const void *host,
                                   cl_memory *made) {
    cl_int code;
    /* with USE_HOST_PTR the driver takes a pointer to what it may write, which READ_ONLY rules out for constants */
    *made = cl.clCreateBuffer(setting->context, flags, (size_t)bytes + PLAN_SLACK, (void *)(uintptr_t)host, &code);
    return *made == NULL ? opencl_failed(code, "the device gives no buffer") : SMARTMEM_OK;
}

static smartmem_status fill(const plan_tensor *tensor, const void *contents, cl_memory memory, cl_queue queue) {
    cl_int code = CL_SUCCESS;
    if (is_image(tensor)) {
        size_t origin[3] = {0, 0, 0}, region[3] = {tensor->width, tensor->height, 1};
        code = cl.clEnqueueWriteImage(queue, memory, 1, origin, region, 0, 0, contents, 0, NULL, NULL);
    } else if (tensor->bytes) {
        code = cl.clEnqueueWriteBuffer(queue, memory, 1, 0, (size_t)tensor->bytes, contents, 0, NULL, NULL);
    }
    return code == CL_SUCCESS ? SMARTMEM_OK : opencl_failed(code, "a constant cannot be copied to the device");
}

smartmem_status memory_open_filled(const memory_setting *setting, const plan_tensor *tensor, const void *contents,
                                   cl_queue queue, cl_memory *made) {
    TRY(need(setting, tensor->bytes, tensor->bytes));
    if (is_image(tensor))
        TRY(make_image(setting, tensor->width, tensor->height, tensor->storage, made));
    else
        TRY(make_buffer(setting, tensor->bytes, CL_MEM_READ_WRITE, NULL, made));
    return fill(tensor, contents, *made, queue);
}

smartmem_status memory_read(const plan_tensor *tensor, cl_memory memory, cl_queue queue, void *contents) {
    cl_int code = CL_SUCCESS;
    if (is_image(tensor)) {
        size_t origin[3] = {0, 0, 0}, region[3] = {tensor->width, tensor->height, 1};
        code = cl.clEnqueueReadImage(queue, memory, 1, origin, region, 0, 0, contents, 0, NULL, NULL);
    } else if (tensor->bytes) {
        code = cl.clEnqueueReadBuffer(queue, memory, 1, 0, (size_t)tensor->bytes, contents, 0, NULL, NULL);
    }
    return code == CL_SUCCESS ? SMARTMEM_OK : opencl_failed(code, "a result cannot be copied from the device");
}

/* Memory for one tensor alone; if the tensor is a constant, with its values. */
static smartmem_status make_own(Memory *memory, const memory_setting *setting, uint32_t number, bool mapped,
                                cl_queue queue) {
    const plan_tensor *tensor = setting->index->tensors + number;
    cl_memory *made = memory->tensors + number;
    if (mapped)
        TRY(make_buffer(setting, tensor->bytes, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, values_of(setting, tensor), made));
    else if (is_image(tensor))
        TRY(make_image(setting, tensor->width, tensor->height, tensor->storage, made));
    else
        TRY(make_buffer(setting, tensor->bytes, CL_MEM_READ_WRITE, NULL, made));
    memory->owned[number] = true;
    if (tensor->role == smartmem_format_Role_CONSTANT && !mapped)
        return fill(tensor, values_of(setting, tensor), *made, queue);
    return SMARTMEM_OK;
}

static smartmem_status begin(Memory *memory, const memory_setting *setting, size_t pieces) {
    size_t count = setting->index->tensors_count;
    *memory = (Memory){.tensors = zeros(count, sizeof *memory->tensors),
                              .owned = zeros(count, sizeof *memory->owned),
                              .count = count,
                              .pieces = zeros(pieces, sizeof *memory->pieces),
                              .pieces_count = pieces};
    if (memory->tensors == NULL || memory->owned == NULL || memory->pieces == NULL)
        return fail(SMARTMEM_NO_MEMORY, "there is too little memory");
    return SMARTMEM_OK;
}

static smartmem_status fill_constants(Memory *memory, const memory_setting *setting, cl_queue queue) {
    uint64_t largest = 0, total = 0;
    for (uint32_t i = 0; i < setting->index->tensors_count; ++i) {
        const plan_tensor *tensor = setting->index->tensors + i;
        if (!is_shared(setting->index, i) || is_mapped(setting, tensor))
            continue;
        largest = tensor->bytes > largest ? tensor->bytes : largest;
        total += tensor->bytes;
    }
    TRY(need(setting, largest, total));
    for (uint32_t i = 0; i < setting->index->tensors_count; ++i)
        if (is_shared(setting->index, i))
            TRY(make_own(memory, setting, i, is_mapped(setting, setting->index->tensors + i), queue));
    return SMARTMEM_OK;
}

smartmem_status memory_open_constants(Memory *memory, const memory_setting *setting, cl_queue queue) {
    smartmem_status status = begin(memory, setting, 0);
    if (status == SMARTMEM_OK)
        status = fill_constants(memory, setting, queue);
    if (status != SMARTMEM_OK)
        memory_close(memory);
    return status;
}

static smartmem_status make_pieces(Memory *memory, const memory_setting *setting, const Pieces *pieces, void *block,
                                   size_t block_bytes) {
    uint8_t *at = block;
    if (block != NULL) {
        if (!setting->device->host_memory)
            return fail(SMARTMEM_UNSUITABLE, "%s does not compute in the host's memory", setting->device->names.name);
        if ((uintptr_t)block % memory_alignment(setting))
            return fail(SMARTMEM_BAD_ARGUMENT, "the memory does not begin at a multiple of %zu bytes",
                        memory_alignment(setting));
        if (block_bytes < pieces_block_bytes(pieces))
            return fail(SMARTMEM_BAD_SIZE, "the memory has %zu bytes, the intermediate results need %llu", block_bytes,
                        (unsigned long long)pieces_block_bytes(pieces));
    }
    for (size_t i = 0; i < pieces->count; ++i) {
        const Piece *one = pieces->all + i;
        cl_bits flags = CL_MEM_READ_WRITE | (block != NULL ? CL_MEM_USE_HOST_PTR : 0);
        if (one->image)
            TRY(make_image(setting, one->width, one->height, one->storage, memory->pieces + i));
        else
            TRY(make_buffer(setting, one->bytes, flags, block != NULL ? at : NULL, memory->pieces + i));
        at = block != NULL ? at + piece_block_bytes(pieces, one) : NULL;
    }
    return SMARTMEM_OK;
}

static smartmem_status make_part(Memory *memory, const Pieces *pieces, const memory_setting *setting, uint32_t number) {
    const plan_tensor *tensor = setting->index->tensors + number;
    uint32_t piece = pieces->of_tensor[number];
    cl_int code;
    if (!pieces->all[piece].parted) {
        memory->tensors[number] = memory->pieces[piece];
        return SMARTMEM_OK;
    }
    /* vector loads reach past the end */
    cl_region region = {(size_t)pieces->offset[number], (size_t)tensor->bytes + PLAN_SLACK};
    memory->tensors[number] = cl.clCreateSubBuffer(memory->pieces[piece], CL_MEM_READ_WRITE,
                                                   CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    if (memory->tensors[number] == NULL)
        return opencl_failed(code, "the device gives no part of a buffer");
    memory->owned[number] = true;
    return SMARTMEM_OK;
}

static smartmem_status make_tensors(Memory *memory, const memory_setting *setting, const Memory *constants,
                                    const Pieces *pieces, cl_queue queue) {
    for (uint32_t i = 0; i < setting->index->tensors_count; ++i)
        if (constants->tensors[i] != NULL)
            memory->tensors[i] = constants->tensors[i];
        else if (setting->index->tensors[i].has_place)
            TRY(make_part(memory, pieces, setting, i));
        else
            TRY(make_own(memory, setting, i, false, queue));
    return SMARTMEM_OK;
}

smartmem_status memory_open_session(Memory *memory, const memory_setting *setting, const Memory *constants,
                                    cl_queue queue, void *block, size_t block_bytes) {
    memory_sizes sizes;
    Pieces pieces;
    TRY(memory_measure(setting, &sizes));
    TRY(need(setting, 0, sizes.session - (block != NULL ? sizes.intermediates : 0)));
    TRY(pieces_open(&pieces, setting));
    smartmem_status status = begin(memory, setting, pieces.count);
    if (status == SMARTMEM_OK)
        status = make_pieces(memory, setting, &pieces, block, block_bytes);
    if (status == SMARTMEM_OK)
        status = make_tensors(memory, setting, constants, &pieces, queue);
    pieces_close(&pieces);
    if (status != SMARTMEM_OK)
        memory_close(memory);
    return status;
}

void memory_close(Memory *memory) {
    for (size_t i = 0; memory->tensors != NULL && memory->owned != NULL && i < memory->count; ++i)
        if (memory->owned[i])
            cl.clReleaseMemObject(memory->tensors[i]);
    for (size_t i = 0; memory->pieces != NULL && i < memory->pieces_count; ++i)
        if (memory->pieces[i] != NULL)
            cl.clReleaseMemObject(memory->pieces[i]);
    free(memory->tensors);
    free(memory->owned);
    free(memory->pieces);
    *memory = (Memory){0};
}

smartmem_status memory_measure(const memory_setting *setting, memory_sizes *sizes) {
    Pieces pieces;
    TRY(pieces_open(&pieces, setting));
    *sizes = (memory_sizes){.intermediates = pieces_block_bytes(&pieces)};
    sizes->session = sizes->intermediates;
    for (size_t i = 0; i < pieces.count; ++i)
        sizes->session += pieces.all[i].image ? pieces.all[i].bytes : 0;
    for (uint32_t i = 0; i < setting->index->tensors_count; ++i) {
        const plan_tensor *tensor = setting->index->tensors + i;
        if (is_shared(setting->index, i))
            sizes->constants += tensor->bytes;
        else if (!tensor->has_place)
            sizes->session += tensor->bytes + PLAN_SLACK;
    }
    pieces_close(&pieces);
    return SMARTMEM_OK;
}

static smartmem_status check_image(const Device *device, const char *name, uint32_t width, uint32_t height) {
    if (!device->images)
        return fail(SMARTMEM_UNSUITABLE, "%s has no images; optimize with memory `buffer`", device->names.name);
    if (width > device->image_width || height > device->image_height)
        return fail(SMARTMEM_UNSUITABLE,
                    "%s takes images of at most %zu x %zu texels, and %s has %u x %u; optimize the model for it",
                    device->names.name, device->image_width, device->image_height, name, width, height);
    return SMARTMEM_OK;
}

smartmem_status memory_check(const memory_setting *setting) {
    const Device *device = setting->device;
    bool whole = device_has_workaround(setting->index, device, "whole_buffers");
    size_t step = device->alignment > setting->file->alignment ? device->alignment : setting->file->alignment;
    uint64_t largest = 0;
    for (size_t i = 0; i < setting->index->slots_count; ++i) {
        const plan_slot *slot = setting->index->slots + i;
        if (slot->memory == smartmem_format_Memory_IMAGE)
            TRY(check_image(device, "an intermediate result", slot->width, slot->height));
        largest = slot->bytes > largest ? slot->bytes : largest;
    }
    for (size_t i = 0; i < setting->index->tensors_count; ++i) {
        const plan_tensor *tensor = setting->index->tensors + i;
        if (is_image(tensor))
            TRY(check_image(device, text_of(tensor->name), tensor->width, tensor->height));
        if (tensor->has_place && !whole && tensor->place.offset % step)
            return fail(SMARTMEM_UNSUITABLE,
                        "the tensor %s lies %llu bytes behind the beginning of a buffer, and %s takes multiples of %zu; "
                        "optimize the model for it",
                        text_of(tensor->name), (unsigned long long)tensor->place.offset, device->names.name, step);
        largest = !tensor->has_place && tensor->bytes > largest ? tensor->bytes : largest;
    }
    return need(setting, largest, 0);
}
