// k0_contraction: global (1,), local (1,)
// Contractions for CPUs. A work-item owns a block of rows of the result and a range of its columns.
//   1. Rows of the left factor that are not contiguous in memory, or that have to be computed (normalised rows,
//      padded convolution windows), are staged into a panel that stays in cache.
//   2. The right factor lies in packed panels of 24 columns: constants were packed when the plan was made, other
//      factors are packed here.
//   3. Register tiles of 1 x 24 sums accumulate the products.
//   4. The epilogue takes the rows of a finished register tile and writes them with vector stores.

__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1] of [1, 84] */,
    __global const uint* restrict p1 /* buffer[d0] of [792] */,
    __global const float* restrict p2 /* buffer[d0] of [72] */,
    __global const uchar* restrict p3 /* buffer[d0] of [72] */,
    __global float* restrict p4 /* buffer[d0d1] of [1, 56] */) {
    const int item = (int)get_global_id(0);
    const int column_block = item % 1;
    const int row_block = item / 1 % 1;
    const int i0 = item / 1;
    const int first_row = row_block * 1;
    const int row_count = min(1, 1 - first_row);

    const int first_tile = column_block * 3;
    const int last_tile = first_tile + 3;
    for (int tile = max(first_tile - 0, 0); tile < min(last_tile - 0, 3); ++tile) {
        __global const uint* right = p1 + (tile) * 264; __global const float* right_scales = p2 + (tile) * 24; __global const uchar* right_zeros = p3 + (tile) * 24;
        for (int r = 0; r < row_count; r += 1) {
            float8 result[3];
            const int valid_rows = min(1, row_count - r);
            __global const float* a0 = p0 + 0;
            float8 c0_0 = 0.0f, c0_1 = 0.0f, c0_2 = 0.0f;

            for (int block = 0; block < 1; ++block) {
                const float8 scale0 = *(__global const float8*)(right_scales + block * 24 + 0);
                const float8 zero0 = convert_float8(*(__global const uchar8*)(right_zeros + block * 24 + 0)) + 8388608.0f;
                const float8 scale1 = *(__global const float8*)(right_scales + block * 24 + 8);
                const float8 zero1 = convert_float8(*(__global const uchar8*)(right_zeros + block * 24 + 8)) + 8388608.0f;
                const float8 scale2 = *(__global const float8*)(right_scales + block * 24 + 16);
                const float8 zero2 = convert_float8(*(__global const uchar8*)(right_zeros + block * 24 + 16)) + 8388608.0f;
                SMR_PREFETCH(right_scales + block * 24 + 46);
                SMR_PREFETCH(right_scales + block * 24 + 62);
            float8 d0_0 = 0.0f, d0_1 = 0.0f, d0_2 = 0.0f;

                for (int word = 0; word < 10; ++word) {
                    __global const uint* words = right + (block * 11 + word) * 24;
                    const int k = block * 84 + word * 8;
                    const uint8 w0 = *(__global const uint8*)(words + 0);
                    const uint8 w1 = *(__global const uint8*)(words + 8);
                    const uint8 w2 = *(__global const uint8*)(words + 16);
                    SMR_PREFETCH(words + 512);
                    SMR_PREFETCH(words + 528);
                    const float8 b0_0 = as_float8((w0 & 15u) | 1258291200u) - zero0;
                    const float8 b0_1 = as_float8((w1 & 15u) | 1258291200u) - zero1;
                    const float8 b0_2 = as_float8((w2 & 15u) | 1258291200u) - zero2;
                    d0_0 += a0[k + 0] * b0_0;
                    d0_1 += a0[k + 0] * b0_1;
                    d0_2 += a0[k + 0] * b0_2;
                    const uint8 v1_0 = w0 >> 4;
                    const float8 b1_0 = as_float8((v1_0 & 15u) | 1258291200u) - zero0;
                    const uint8 v1_1 = w1 >> 4;
                    const float8 b1_1 = as_float8((v1_1 & 15u) | 1258291200u) - zero1;
                    const uint8 v1_2 = w2 >> 4;
                    const float8 b1_2 = as_float8((v1_2 & 15u) | 1258291200u) - zero2;
                    d0_0 += a0[k + 1] * b1_0;
                    d0_1 += a0[k + 1] * b1_1;
                    d0_2 += a0[k + 1] * b1_2;
                    const uint8 v2_0 = w0 >> 8;
                    const float8 b2_0 = as_float8((v2_0 & 15u) | 1258291200u) - zero0;
                    const uint8 v2_1 = w1 >> 8;
                    const float8 b2_1 = as_float8((v2_1 & 15u) | 1258291200u) - zero1;
                    const uint8 v2_2 = w2 >> 8;
                    const float8 b2_2 = as_float8((v2_2 & 15u) | 1258291200u) - zero2;
                    d0_0 += a0[k + 2] * b2_0;
                    d0_1 += a0[k + 2] * b2_1;
                    d0_2 += a0[k + 2] * b2_2;
                    const uint8 v3_0 = w0 >> 12;
                    const float8 b3_0 = as_float8((v3_0 & 15u) | 1258291200u) - zero0;
                    const uint8 v3_1 = w1 >> 12;
                    const float8 b3_1 = as_float8((v3_1 & 15u) | 1258291200u) - zero1;
                    const uint8 v3_2 = w2 >> 12;
                    const float8 b3_2 = as_float8((v3_2 & 15u) | 1258291200u) - zero2;
                    d0_0 += a0[k + 3] * b3_0;
                    d0_1 += a0[k + 3] * b3_1;
                    d0_2 += a0[k + 3] * b3_2;
                    const uint8 v4_0 = w0 >> 16;
                    const float8 b4_0 = as_float8((v4_0 & 15u) | 1258291200u) - zero0;
                    const uint8 v4_1 = w1 >> 16;
                    const float8 b4_1 = as_float8((v4_1 & 15u) | 1258291200u) - zero1;
                    const uint8 v4_2 = w2 >> 16;
                    const float8 b4_2 = as_float8((v4_2 & 15u) | 1258291200u) - zero2;
                    d0_0 += a0[k + 4] * b4_0;
                    d0_1 += a0[k + 4] * b4_1;
                    d0_2 += a0[k + 4] * b4_2;
                    const uint8 v5_0 = w0 >> 20;
                    const float8 b5_0 = as_float8((v5_0 & 15u) | 1258291200u) - zero0;
                    const uint8 v5_1 = w1 >> 20;
                    const float8 b5_1 = as_float8((v5_1 & 15u) | 1258291200u) - zero1;
                    const uint8 v5_2 = w2 >> 20;
                    const float8 b5_2 = as_float8((v5_2 & 15u) | 1258291200u) - zero2;
                    d0_0 += a0[k + 5] * b5_0;
                    d0_1 += a0[k + 5] * b5_1;
                    d0_2 += a0[k + 5] * b5_2;
                    const uint8 v6_0 = w0 >> 24;
                    const float8 b6_0 = as_float8((v6_0 & 15u) | 1258291200u) - zero0;
                    const uint8 v6_1 = w1 >> 24;
                    const float8 b6_1 = as_float8((v6_1 & 15u) | 1258291200u) - zero1;
                    const uint8 v6_2 = w2 >> 24;
                    const float8 b6_2 = as_float8((v6_2 & 15u) | 1258291200u) - zero2;
                    d0_0 += a0[k + 6] * b6_0;
                    d0_1 += a0[k + 6] * b6_1;
                    d0_2 += a0[k + 6] * b6_2;
                    const uint8 v7_0 = w0 >> 28;
                    const float8 b7_0 = as_float8(v7_0 | 1258291200u) - zero0;
                    const uint8 v7_1 = w1 >> 28;
                    const float8 b7_1 = as_float8(v7_1 | 1258291200u) - zero1;
                    const uint8 v7_2 = w2 >> 28;
                    const float8 b7_2 = as_float8(v7_2 | 1258291200u) - zero2;
                    d0_0 += a0[k + 7] * b7_0;
                    d0_1 += a0[k + 7] * b7_1;
                    d0_2 += a0[k + 7] * b7_2;

                }
                {
                    __global const uint* words = right + (block * 11 + 10) * 24;
                    const int k = block * 84 + 80;
                    const uint8 w0 = *(__global const uint8*)(words + 0);
                    const uint8 w1 = *(__global const uint8*)(words + 8);
                    const uint8 w2 = *(__global const uint8*)(words + 16);
                    const float8 b0_0 = as_float8((w0 & 15u) | 1258291200u) - zero0;
                    const float8 b0_1 = as_float8((w1 & 15u) | 1258291200u) - zero1;
                    const float8 b0_2 = as_float8((w2 & 15u) | 1258291200u) - zero2;
                    d0_0 += a0[k + 0] * b0_0;
                    d0_1 += a0[k + 0] * b0_1;
                    d0_2 += a0[k + 0] * b0_2;
                    const uint8 v1_0 = w0 >> 4;
                    const float8 b1_0 = as_float8((v1_0 & 15u) | 1258291200u) - zero0;
                    const uint8 v1_1 = w1 >> 4;
                    const float8 b1_1 = as_float8((v1_1 & 15u) | 1258291200u) - zero1;
                    const uint8 v1_2 = w2 >> 4;
                    const float8 b1_2 = as_float8((v1_2 & 15u) | 1258291200u) - zero2;
                    d0_0 += a0[k + 1] * b1_0;
                    d0_1 += a0[k + 1] * b1_1;
                    d0_2 += a0[k + 1] * b1_2;
                    const uint8 v2_0 = w0 >> 8;
                    const float8 b2_0 = as_float8((v2_0 & 15u) | 1258291200u) - zero0;
                    const uint8 v2_1 = w1 >> 8;
                    const float8 b2_1 = as_float8((v2_1 & 15u) | 1258291200u) - zero1;
                    const uint8 v2_2 = w2 >> 8;
                    const float8 b2_2 = as_float8((v2_2 & 15u) | 1258291200u) - zero2;
                    d0_0 += a0[k + 2] * b2_0;
                    d0_1 += a0[k + 2] * b2_1;
                    d0_2 += a0[k + 2] * b2_2;
                    const uint8 v3_0 = w0 >> 12;
                    const float8 b3_0 = as_float8((v3_0 & 15u) | 1258291200u) - zero0;
                    const uint8 v3_1 = w1 >> 12;
                    const float8 b3_1 = as_float8((v3_1 & 15u) | 1258291200u) - zero1;
                    const uint8 v3_2 = w2 >> 12;
                    const float8 b3_2 = as_float8((v3_2 & 15u) | 1258291200u) - zero2;
                    d0_0 += a0[k + 3] * b3_0;
                    d0_1 += a0[k + 3] * b3_1;
                    d0_2 += a0[k + 3] * b3_2;

                }
                c0_0 += d0_0 * scale0;
                c0_1 += d0_1 * scale1;
                c0_2 += d0_2 * scale2;

            }

            result[0] = c0_0;
            result[1] = c0_1;
            result[2] = c0_2;
            for (int i = 0; i < valid_rows; ++i) {
                const int i1 = first_row + r + i;
                const float* accumulated = (const float*)(result + i * 3);
     {
        if (tile * 24 + 8 <= 56) {
            const float8 t1 = smr_max8((*(const smr_float8*)(accumulated + 0)), (float8)(0.0f));
            *(__global float8*)(p4 + tile * 24) = t1;
        }
        if (tile * 24 + 16 <= 56) {
            const float8 t2 = smr_max8((*(const smr_float8*)(accumulated + 8)), (float8)(0.0f));
            *(__global float8*)(p4 + (tile * 24 + 8)) = t2;
        }
        if (tile * 24 + 24 <= 56) {
            const float8 t3 = smr_max8((*(const smr_float8*)(accumulated + 16)), (float8)(0.0f));
            *(__global float8*)(p4 + (tile * 24 + 16)) = t3;
        }
    }
            }
        }
    }
}
