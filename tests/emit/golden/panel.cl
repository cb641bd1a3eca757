// k0_contraction: global (1,), local (1,)
// Contractions for CPUs. A work-item owns a block of rows of the result and a range of its columns.
//   1. Rows of the left factor that are not contiguous in memory, or that have to be computed (normalised rows,
//      padded convolution windows), are staged into a panel that stays in cache.
//   2. The right factor lies in packed panels of 24 columns: constants were packed when the plan was made, other
//      factors are packed here.
//   3. Register tiles of 4 x 24 sums accumulate the products.
//   4. The epilogue takes the rows of a finished register tile and writes them with vector stores.

__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0] of [24] */,
    __global const float* restrict p1 /* buffer[d0d1] of [10, 48] */,
    __global const float* restrict p2 /* buffer[d0] of [1152] */,
    __global float* restrict p3 /* buffer[d0d1] of [10, 24] */) {
    const int item = (int)get_global_id(0);
    const int column_block = item % 1;
    const int row_block = item / 1 % 1;
    const int i0 = item / 1;
    const int first_row = row_block * 12;
    const int row_count = min(12, 10 - first_row);

    const int first_tile = column_block * 1;
    const int last_tile = first_tile + 1;
    for (int tile = max(first_tile - 0, 0); tile < min(last_tile - 0, 1); ++tile) {
        __global const float* right = p2 + (tile) * 1152;
        for (int r = 0; r < row_count; r += 4) {
            float8 result[12];
            const int valid_rows = min(4, row_count - r);
            __global const float* a0 = p1 + (first_row + min(r + 0, row_count - 1)) * 48;
            __global const float* a1 = p1 + (first_row + min(r + 1, row_count - 1)) * 48;
            __global const float* a2 = p1 + (first_row + min(r + 2, row_count - 1)) * 48;
            __global const float* a3 = p1 + (first_row + min(r + 3, row_count - 1)) * 48;
            float8 c0_0 = 0.0f, c0_1 = 0.0f, c0_2 = 0.0f;
            float8 c1_0 = 0.0f, c1_1 = 0.0f, c1_2 = 0.0f;
            float8 c2_0 = 0.0f, c2_1 = 0.0f, c2_2 = 0.0f;
            float8 c3_0 = 0.0f, c3_1 = 0.0f, c3_2 = 0.0f;
            __global const float* next = right + 1152 + r / 4 % 2 * 768;
            for (int k = 0; k < 48; ++k) {
                SMR_PREFETCH_LATER(next + k * 16);
                const float8 b0 = *(__global const smr_float8*)(right + k * 24 + 0);
                const float8 b1 = *(__global const smr_float8*)(right + k * 24 + 8);
                const float8 b2 = *(__global const smr_float8*)(right + k * 24 + 16);
                c0_0 += a0[k] * b0;
                c0_1 += a0[k] * b1;
                c0_2 += a0[k] * b2;
                c1_0 += a1[k] * b0;
                c1_1 += a1[k] * b1;
                c1_2 += a1[k] * b2;
                c2_0 += a2[k] * b0;
                c2_1 += a2[k] * b1;
                c2_2 += a2[k] * b2;
                c3_0 += a3[k] * b0;
                c3_1 += a3[k] * b1;
                c3_2 += a3[k] * b2;
            }

            result[0] = c0_0;
            result[1] = c0_1;
            result[2] = c0_2;
            result[3] = c1_0;
            result[4] = c1_1;
            result[5] = c1_2;
            result[6] = c2_0;
            result[7] = c2_1;
            result[8] = c2_2;
            result[9] = c3_0;
            result[10] = c3_1;
            result[11] = c3_2;
            for (int i = 0; i < valid_rows; ++i) {
                const int i1 = first_row + r + i;
                const float* accumulated = (const float*)(result + i * 3);
     {
         {
            const float8 t1 = *(__global const float8*)(p0 + 0);
            const float8 t2 = ((*(const smr_float8*)(accumulated + 0)) + t1);
            const float8 t3 = smr_max8(t2, (float8)(0.0f));
            *(__global float8*)(p3 + i1 * 24) = t3;
        }
         {
            const float8 t4 = *(__global const float8*)(p0 + (8));
            const float8 t5 = ((*(const smr_float8*)(accumulated + 8)) + t4);
            const float8 t6 = smr_max8(t5, (float8)(0.0f));
            *(__global float8*)(p3 + (i1 * 24 + 8)) = t6;
        }
         {
            const float8 t7 = *(__global const float8*)(p0 + (16));
            const float8 t8 = ((*(const smr_float8*)(accumulated + 16)) + t7);
            const float8 t9 = smr_max8(t8, (float8)(0.0f));
            *(__global float8*)(p3 + (i1 * 24 + 16)) = t9;
        }
    }
            }
        }
    }
}
