/* The pieces of device memory that intermediates share, and where each intermediate lies in them. */
#ifndef SMARTMEM_PIECES_H
#define SMARTMEM_PIECES_H

#include "device.h"
#include "index.h"

/* What memory is made for. */
typedef struct memory_setting {
    const plan_file *file;
    const plan_index *index;
    const Device *device;
    cl_context context;
} memory_setting;

/* Memory that the application gives lies at multiples of as many bytes, at least. */
enum { BLOCK_ALIGNMENT = 128 };

/* Bytes at multiples of which a tensor has to begin where kernels use memory that the driver has not made. */
size_t memory_alignment(const memory_setting *setting);

typedef struct Piece {
    bool image;
    uint64_t bytes;
    uint32_t width, height, storage; /* of an image */
    bool parted;                     /* some tensor begins behind its beginning */
    smartmem_format_Place place;     /* of what it holds, where each place has a piece */
} Piece;

typedef struct Pieces {
    Piece *all;
    size_t count;
    uint32_t *of_tensor; /* by tensor */
    uint64_t *offset;    /* of the tensor in its piece */
    size_t alignment;    /* of pieces in a block, bytes */
} Pieces;

/* The plan's pieces; where the driver fails in parts of buffers, a piece for each place. */
smartmem_status pieces_open(Pieces *pieces, const memory_setting *setting);
void pieces_close(Pieces *pieces);

/* Bytes of one block that holds all buffers among the pieces. */
uint64_t pieces_block_bytes(const Pieces *pieces);

/* Bytes that a buffer among the pieces takes of such a block. */
uint64_t piece_block_bytes(const Pieces *pieces, const Piece *piece);

#endif
