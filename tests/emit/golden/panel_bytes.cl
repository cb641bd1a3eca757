// k0_contraction: global (1,), local (1,)
// Contractions for CPUs. A work-item owns a block of rows of the result and a range of its columns.
//   1. Rows of the left factor that are not contiguous in memory, or that have to be computed (normalised rows,
//      padded convolution windows), are staged into a panel that stays in cache.
//   2. The right factor lies in packed panels of 24 columns: constants were packed when the plan was made, other
//      factors are packed here.
//   3. Register tiles of 4 x 24 sums accumulate the products.
//   4. The epilogue takes the rows of a finished register tile and writes them with vector stores.

__kernel void smr_kernel(
    __global const uchar* restrict p0 /* buffer[d0d1] of [10, 64] */,
    __global const uint* restrict p1 /* buffer[d0] of [384] */,
    __global const int* restrict p2 /* buffer[d0] of [24] */,
    __global int* restrict p3 /* buffer[d0d1] of [10, 24] */) {
    const int item = (int)get_global_id(0);
    const int column_block = item % 1;
    const int row_block = item / 1 % 1;
    const int i0 = item / 1;
    const int first_row = row_block * 12;
    const int row_count = min(12, 10 - first_row);
    const int t1 = ((int)(int)(7));
    const int left_zero = -(t1);
    const int first_tile = column_block * 1;
    const int last_tile = first_tile + 1;
    for (int tile = max(first_tile - 0, 0); tile < min(last_tile - 0, 1); ++tile) {
        __global const int* right = (__global const int*)(p1 + (tile) * 384); __global const int* right_sums = (__global const int*)(p2 + (tile) * 24);
        for (int r = 0; r < row_count; r += 4) {
            int8 result[12];
            const int valid_rows = min(4, row_count - r);
            __global const uchar* a0 = p0 + (first_row + min(r + 0, row_count - 1)) * 64;
            __global const uchar* a1 = p0 + (first_row + min(r + 1, row_count - 1)) * 64;
            __global const uchar* a2 = p0 + (first_row + min(r + 2, row_count - 1)) * 64;
            __global const uchar* a3 = p0 + (first_row + min(r + 3, row_count - 1)) * 64;
            const int8 sum0 = *(__global const smr_int8*)(right_sums + 0);
            const int8 sum1 = *(__global const smr_int8*)(right_sums + 8);
            const int8 sum2 = *(__global const smr_int8*)(right_sums + 16);
            int8 c0_0 = sum0 * left_zero;
            int8 c0_1 = sum1 * left_zero;
            int8 c0_2 = sum2 * left_zero;
            int8 c1_0 = sum0 * left_zero;
            int8 c1_1 = sum1 * left_zero;
            int8 c1_2 = sum2 * left_zero;
            int8 c2_0 = sum0 * left_zero;
            int8 c2_1 = sum1 * left_zero;
            int8 c2_2 = sum2 * left_zero;
            int8 c3_0 = sum0 * left_zero;
            int8 c3_1 = sum1 * left_zero;
            int8 c3_2 = sum2 * left_zero;
            __global const int* next = right + 384 + r / 4 % 2 * 256;
            for (int k = 0; k < 16; ++k) {
                SMR_PREFETCH_LATER(next + k * 16);
                const int8 b0 = *(__global const smr_int8*)(right + k * 24 + 0);
                const int8 b1 = *(__global const smr_int8*)(right + k * 24 + 8);
                const int8 b2 = *(__global const smr_int8*)(right + k * 24 + 16);
                const int w0 = as_int(*(__global const smr_uchar4*)(a0 + 4 * k));
                c0_0 = smr_dot8(c0_0, w0, b0);
                c0_1 = smr_dot8(c0_1, w0, b1);
                c0_2 = smr_dot8(c0_2, w0, b2);
                const int w1 = as_int(*(__global const smr_uchar4*)(a1 + 4 * k));
                c1_0 = smr_dot8(c1_0, w1, b0);
                c1_1 = smr_dot8(c1_1, w1, b1);
                c1_2 = smr_dot8(c1_2, w1, b2);
                const int w2 = as_int(*(__global const smr_uchar4*)(a2 + 4 * k));
                c2_0 = smr_dot8(c2_0, w2, b0);
                c2_1 = smr_dot8(c2_1, w2, b1);
                c2_2 = smr_dot8(c2_2, w2, b2);
                const int w3 = as_int(*(__global const smr_uchar4*)(a3 + 4 * k));
                c3_0 = smr_dot8(c3_0, w3, b0);
                c3_1 = smr_dot8(c3_1, w3, b1);
                c3_2 = smr_dot8(c3_2, w3, b2);
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
                const int* accumulated = (const int*)(result + i * 3);
     {
         {
            *(__global smr_int8*)(p3 + i1 * 24) = (*(const smr_int8*)(accumulated + 0));
        }
         {
            *(__global smr_int8*)(p3 + (i1 * 24 + 8)) = (*(const smr_int8*)(accumulated + 8));
        }
         {
            *(__global smr_int8*)(p3 + (i1 * 24 + 16)) = (*(const smr_int8*)(accumulated + 16));
        }
    }
            }
        }
    }
}
