// k0_reduction: global (1,), local (1,)
// Contractions for CPUs with an epilogue that reduces whole rows, as a normalisation behind a product does. A work-item
// owns whole rows of the product: it computes them into scratch memory, where they stay in cache, and then the statistics
// and results of each row.
__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1] of [10, 48] */,
    __global const float* restrict p1 /* buffer[d0] of [1152] */,
    __global float* restrict p2 /* buffer[d0d1] of [10, 24] */) {
    const int item = (int)get_global_id(0);
    const int row_block = item % 1;
    const int i0 = item / 1;
    const int first_row = row_block * 12;
    const int row_count = min(12, 10 - first_row);
    float inner[288];
    for (int tile = 0; tile < 1; ++tile) {
        __global const float* right = p1 + (tile) * 1152;
        for (int r = 0; r < row_count; r += 4) {
                __global const float* a0 = p0 + (first_row + min(r + 0, row_count - 1)) * 48;
                __global const float* a1 = p0 + (first_row + min(r + 1, row_count - 1)) * 48;
                __global const float* a2 = p0 + (first_row + min(r + 2, row_count - 1)) * 48;
                __global const float* a3 = p0 + (first_row + min(r + 3, row_count - 1)) * 48;
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
    
            if (r + 0 < row_count) {
                *(smr_float8*)(inner + (r + 0) * 24 + tile * 24 + 0) = c0_0;
                *(smr_float8*)(inner + (r + 0) * 24 + tile * 24 + 8) = c0_1;
                *(smr_float8*)(inner + (r + 0) * 24 + tile * 24 + 16) = c0_2;
            }
            if (r + 1 < row_count) {
                *(smr_float8*)(inner + (r + 1) * 24 + tile * 24 + 0) = c1_0;
                *(smr_float8*)(inner + (r + 1) * 24 + tile * 24 + 8) = c1_1;
                *(smr_float8*)(inner + (r + 1) * 24 + tile * 24 + 16) = c1_2;
            }
            if (r + 2 < row_count) {
                *(smr_float8*)(inner + (r + 2) * 24 + tile * 24 + 0) = c2_0;
                *(smr_float8*)(inner + (r + 2) * 24 + tile * 24 + 8) = c2_1;
                *(smr_float8*)(inner + (r + 2) * 24 + tile * 24 + 16) = c2_2;
            }
            if (r + 3 < row_count) {
                *(smr_float8*)(inner + (r + 3) * 24 + tile * 24 + 0) = c3_0;
                *(smr_float8*)(inner + (r + 3) * 24 + tile * 24 + 8) = c3_1;
                *(smr_float8*)(inner + (r + 3) * 24 + tile * 24 + 16) = c3_2;
            }
        }
    }
    for (int i3 = 0; i3 < row_count; ++i3) {
        const int i1 = first_row + i3;
        const float* inner_row = inner + i3 * 24;
        float t1[24];
        #pragma unroll
        for (int i4 = 0; i4 < 3; ++i4) {
            *(smr_float8*)(t1 + i4 * 8) = (*(const smr_float8*)(inner_row + i4 * 8));
        }
        float8 t2 = (float8)(-INFINITY);
        #pragma unroll
        for (int i5 = 0; i5 < 3; ++i5) {
            t2 = smr_max8(t2, (*(const smr_float8*)(t1 + i5 * 8)));
        }
        float t3 = (smr_max1((smr_max1((smr_max1(t2.s0, t2.s4)), (smr_max1(t2.s2, t2.s6)))), (smr_max1((smr_max1(t2.s1, t2.s5)), (smr_max1(t2.s3, t2.s7))))));
        float t4[24];
        #pragma unroll
        for (int i6 = 0; i6 < 3; ++i6) {
            const float8 t5 = ((*(const smr_float8*)(t1 + i6 * 8)) - (float8)(t3));
            const float8 t6 = smr_exp8(t5);
            *(smr_float8*)(t4 + i6 * 8) = t6;
        }
        float8 t7 = (float8)(0.0f);
        #pragma unroll
        for (int i6 = 0; i6 < 3; ++i6) {
            t7 = t7 + (*(const smr_float8*)(t4 + i6 * 8));
        }
        float t8 = (((t7.s0 + t7.s4) + (t7.s2 + t7.s6)) + ((t7.s1 + t7.s5) + (t7.s3 + t7.s7)));
        #pragma unroll
        for (int i7 = 0; i7 < 3; ++i7) {
            const float8 t9 = ((*(const smr_float8*)(t4 + i7 * 8)) / (float8)(t8));
            *(__global float8*)(p2 + (i1 * 24 + i7 * 8)) = t9;
        }
    }
}
