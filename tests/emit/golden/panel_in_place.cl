// k0_contraction: global (2,), local (1,)
// Contractions for CPUs. A work-item owns a block of rows of the result and a range of its columns.
//   1. Rows of the left factor that are not contiguous in memory, or that have to be computed (normalised rows,
//      padded convolution windows), are staged into a panel that stays in cache.
//   2. The right factor lies in packed panels of 16 columns: constants were packed when the plan was made, other
//      factors are packed here, or read where they lie.
//   3. Register tiles of 1 x 16 sums accumulate the products.
//   4. The epilogue takes the rows of a finished register tile and writes them with vector stores.

__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1d2] of [2, 5, 16] */,
    __global const float* restrict p1 /* buffer[d0d1d2] of [2, 1, 16] */,
    __global const float* restrict p2 /* buffer[d0d1d2] of [2, 5, 16] */,
    __global float* restrict p3 /* buffer[d0d1d2] of [2, 1, 16] */) {
    const int item = (int)get_global_id(0);
    const int column_block = item % 1;
    const int row_block = item / 1 % 1;
    const int i0 = item / 1;
    const int first_row = row_block * 1;
    const int row_count = min(1, 1 - first_row);
    float inner[16];
    __global const float* left0 = p1 + i0 * 16;
    const float8 left0_0 = *(__global const smr_float8*)(left0 + 0);
    const float8 left0_1 = *(__global const smr_float8*)(left0 + 8);
    for (int i5 = 0; i5 < 5; ++i5) {
        const float8 t3 = *(__global const float8*)(p2 + (i0 * 80 + i5 * 16));
        const float8 t4 = *(__global const float8*)(p2 + (i0 * 80 + i5 * 16 + 8));
        float8 sum0_8 = left0_0 * t3;
        sum0_8 += left0_1 * t4;
        const float4 sum0_4 = sum0_8.lo + sum0_8.hi;
        const float2 sum0_2 = sum0_4.lo + sum0_4.hi;
        inner[0 * 16 + i5] = sum0_2.s0 + sum0_2.s1;
    }
    float panel[5];
    for (int i6 = 0; i6 < row_count; ++i6) {
        const int i1 = first_row + i6;
        const float* inner_row = inner + i6 * 16;
        float t5[5];
        for (int i5 = 0; i5 < 5; ++i5) {
            const float t6 = (inner_row[i5] * 0.1257302165031433f);
            t5[i5] = t6;
        }
        float t7 = -INFINITY;
        for (int i7 = 0; i7 < 5; ++i7) {
            t7 = smr_max1(t7, t5[i7]);
        }
        float t8[5];
        for (int i8 = 0; i8 < 5; ++i8) {
            const float t9 = (t5[i8] - t7);
            const float t10 = smr_exp1(t9);
            t8[i8] = t10;
        }
        float t11 = 0.0f;
        for (int i8 = 0; i8 < 5; ++i8) {
            t11 = t11 + t8[i8];
        }
        for (int i2 = 0; i2 < 5; ++i2) {
            const float t12 = (t8[i2] / t11);
            panel[i2] = t12;
        }
    }
    const int first_tile = column_block * 1;
    const int last_tile = first_tile + 1;
    for (int tile = max(first_tile - 0, 0); tile < min(last_tile - 0, 1); ++tile) {
        
        for (int r = 0; r < row_count; r += 1) {
            float8 result[2];
            const int valid_rows = min(1, row_count - r);
            const float* a0 = panel + (min(r + 0, row_count - 1)) * 5;
            float8 c0_0 = 0.0f, c0_1 = 0.0f;
    for (int i2 = 0; i2 < 5; ++i2) {
        const float8 t1 = *(__global const float8*)(p0 + (i0 * 80 + i2 * 16));
        c0_0 += a0[i2] * t1;
        const float8 t2 = *(__global const float8*)(p0 + (i0 * 80 + i2 * 16 + 8));
        c0_1 += a0[i2] * t2;
    }
            result[0] = c0_0;
            result[1] = c0_1;
#pragma unroll
            for (int i = 0; i < 1; ++i) if (i < valid_rows) {
                const int i1 = first_row + r + i;
                const float* accumulated = (const float*)(result + i * 2);
     {
         {
            *(__global float8*)(p3 + i0 * 16) = (*(const smr_float8*)(accumulated + 0));
        }
         {
            *(__global float8*)(p3 + (i0 * 16 + 8)) = (*(const smr_float8*)(accumulated + 8));
        }
    }
            }
        }
    }
}
