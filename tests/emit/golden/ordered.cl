// k0_contraction: global (16,), local (1,)
#ifndef smr_part_46c0f54c28aa_DEFINED
#define smr_part_46c0f54c28aa_DEFINED
// Contractions for CPUs. A work-item owns a block of rows of the result and a range of its columns.
//   1. Rows of the left factor that are not contiguous in memory, or that have to be computed (normalised rows,
//      padded convolution windows), are staged into a panel that stays in cache.
//   2. The right factor lies in packed panels of 16 columns: constants were packed when the plan was made, other
//      factors are packed here.
//   3. Register tiles of 5 x 16 sums accumulate the products.
//   4. The epilogue takes the rows of a finished register tile and writes them with vector stores.

static void smr_part_46c0f54c28aa(
    __global const float* restrict p0 /* buffer[d0d1] of [10, 8] */,
    __global const float* restrict p1 /* buffer[d0] of [128] */,
    __global float* restrict p2 /* buffer[d1d0] of [10, 16] */,
    const int item) {
    const int column_block = item % 1;
    const int row_block = item / 1 % 1;
    const int i0 = item / 1;
    const int first_row = row_block * 10;
    const int row_count = min(10, 10 - first_row);

    const int first_tile = column_block * 1;
    const int last_tile = first_tile + 1;
    for (int tile = max(first_tile - 0, 0); tile < min(last_tile - 0, 1); ++tile) {
        __global const float* right = p1 + (tile) * 128;
        for (int r = 0; r < row_count; r += 5) {
            float8 result[10];
            const int valid_rows = min(5, row_count - r);
            __global const float* a0 = p0 + (first_row + min(r + 0, row_count - 1)) * 8;
            __global const float* a1 = p0 + (first_row + min(r + 1, row_count - 1)) * 8;
            __global const float* a2 = p0 + (first_row + min(r + 2, row_count - 1)) * 8;
            __global const float* a3 = p0 + (first_row + min(r + 3, row_count - 1)) * 8;
            __global const float* a4 = p0 + (first_row + min(r + 4, row_count - 1)) * 8;
            float8 c0_0 = 0.0f, c0_1 = 0.0f;
            float8 c1_0 = 0.0f, c1_1 = 0.0f;
            float8 c2_0 = 0.0f, c2_1 = 0.0f;
            float8 c3_0 = 0.0f, c3_1 = 0.0f;
            float8 c4_0 = 0.0f, c4_1 = 0.0f;
            __global const float* next = right + 128;
            for (int k = 0; k < 8; ++k) {
                SMR_PREFETCH_LATER(next + k * 16);
                const float8 b0 = *(__global const smr_float8*)(right + k * 16 + 0);
                const float8 b1 = *(__global const smr_float8*)(right + k * 16 + 8);
                c0_0 += a0[k] * b0;
                c0_1 += a0[k] * b1;
                c1_0 += a1[k] * b0;
                c1_1 += a1[k] * b1;
                c2_0 += a2[k] * b0;
                c2_1 += a2[k] * b1;
                c3_0 += a3[k] * b0;
                c3_1 += a3[k] * b1;
                c4_0 += a4[k] * b0;
                c4_1 += a4[k] * b1;
            }

            result[0] = c0_0;
            result[1] = c0_1;
            result[2] = c1_0;
            result[3] = c1_1;
            result[4] = c2_0;
            result[5] = c2_1;
            result[6] = c3_0;
            result[7] = c3_1;
            result[8] = c4_0;
            result[9] = c4_1;
#pragma unroll
            for (int i = 0; i < 5; ++i) if (i < valid_rows) {
                const int i1 = first_row + r + i;
                const float* accumulated = (const float*)(result + i * 2);
     {
         {
            p2[i1] = ((*(const smr_float8*)(accumulated + 0))).s0;
            p2[(i1 + 10)] = ((*(const smr_float8*)(accumulated + 0))).s1;
            p2[(i1 + 20)] = ((*(const smr_float8*)(accumulated + 0))).s2;
            p2[(i1 + 30)] = ((*(const smr_float8*)(accumulated + 0))).s3;
            p2[(i1 + 40)] = ((*(const smr_float8*)(accumulated + 0))).s4;
            p2[(i1 + 50)] = ((*(const smr_float8*)(accumulated + 0))).s5;
            p2[(i1 + 60)] = ((*(const smr_float8*)(accumulated + 0))).s6;
            p2[(i1 + 70)] = ((*(const smr_float8*)(accumulated + 0))).s7;
        }
         {
            p2[(i1 + 80)] = ((*(const smr_float8*)(accumulated + 8))).s0;
            p2[(i1 + 90)] = ((*(const smr_float8*)(accumulated + 8))).s1;
            p2[(i1 + 100)] = ((*(const smr_float8*)(accumulated + 8))).s2;
            p2[(i1 + 110)] = ((*(const smr_float8*)(accumulated + 8))).s3;
            p2[(i1 + 120)] = ((*(const smr_float8*)(accumulated + 8))).s4;
            p2[(i1 + 130)] = ((*(const smr_float8*)(accumulated + 8))).s5;
            p2[(i1 + 140)] = ((*(const smr_float8*)(accumulated + 8))).s6;
            p2[(i1 + 150)] = ((*(const smr_float8*)(accumulated + 8))).s7;
        }
    }
            }
        }
    }
}
#endif
#ifndef smr_part_cc786ef09398_DEFINED
#define smr_part_cc786ef09398_DEFINED
// Row reductions: a work-item computes whole rows. Statistics of a row are scalars, values of a row that are used twice lie
// in scratch memory, and results that depend on the row alone are written in the same pass.

#pragma OPENCL FP_CONTRACT OFF
static void smr_part_cc786ef09398(
    __global const float* restrict p0 /* buffer[d1d0] of [10, 16] */,
    __global float* restrict p1 /* buffer[d0d1] of [10, 16] */,
    const int item) {
    for (int i0 = item * 1; i0 < min((item + 1) * 1, 16); ++i0) {
        float8 t1 = (float8)(-INFINITY);
        for (int i1 = 0; i1 < 1; ++i1) {
            const float8 t2 = *(__global const smr_float8*)(p0 + i0 * 10);
            t1 = smr_max8(t1, t2);
        }
        float t3 = (smr_max1((smr_max1((smr_max1(t1.s0, t1.s4)), (smr_max1(t1.s2, t1.s6)))), (smr_max1((smr_max1(t1.s1, t1.s5)), (smr_max1(t1.s3, t1.s7))))));
        for (int i2 = 0; i2 < 2; ++i2) {
            const float t4 = p0[(i0 * 10 + i2 + 8)];
            t3 = smr_max1(t3, t4);
        }
        float t5[10];
        for (int i3 = 0; i3 < 1; ++i3) {
            const float8 t6 = *(__global const smr_float8*)(p0 + i0 * 10);
            const float8 t7 = (t6 - (float8)(t3));
            const float8 t8 = smr_exp8(t7);
            *(smr_float8*)(t5 + 0) = t8;
        }
        for (int i4 = 0; i4 < 2; ++i4) {
            const float t9 = p0[(i0 * 10 + i4 + 8)];
            const float t10 = (t9 - t3);
            const float t11 = smr_exp1(t10);
            t5[(i4 + 8)] = t11;
        }
        float8 t12 = (float8)(0.0f);
        for (int i3 = 0; i3 < 1; ++i3) {
            t12 = t12 + (*(const smr_float8*)(t5 + 0));
        }
        float t13 = (((t12.s0 + t12.s4) + (t12.s2 + t12.s6)) + ((t12.s1 + t12.s5) + (t12.s3 + t12.s7)));
        for (int i4 = 0; i4 < 2; ++i4) {
            t13 = t13 + t5[(i4 + 8)];
        }
        for (int i5 = 0; i5 < 1; ++i5) {
            const float8 t14 = ((*(const smr_float8*)(t5 + 0)) / (float8)(t13));
            p1[i0] = t14.s0;
            p1[(i0 + 16)] = t14.s1;
            p1[(i0 + 32)] = t14.s2;
            p1[(i0 + 48)] = t14.s3;
            p1[(i0 + 64)] = t14.s4;
            p1[(i0 + 80)] = t14.s5;
            p1[(i0 + 96)] = t14.s6;
            p1[(i0 + 112)] = t14.s7;
        }
        for (int i6 = 0; i6 < 2; ++i6) {
            const float t15 = (t5[(i6 + 8)] / t13);
            p1[(i0 + i6 * 16 + 128)] = t15;
        }
    }
}
#pragma OPENCL FP_CONTRACT DEFAULT

#endif
#ifndef smr_part_6c04e55af933_DEFINED
#define smr_part_6c04e55af933_DEFINED
// Contractions for CPUs. A work-item owns a block of rows of the result and a range of its columns.
//   1. Rows of the left factor that are not contiguous in memory, or that have to be computed (normalised rows,
//      padded convolution windows), are staged into a panel that stays in cache.
//   2. The right factor lies in packed panels of 8 columns: constants were packed when the plan was made, other
//      factors are packed here.
//   3. Register tiles of 6 x 8 sums accumulate the products.
//   4. The epilogue takes the rows of a finished register tile and writes them with vector stores.

static void smr_part_6c04e55af933(
    __global const float* restrict p0 /* buffer[d0d1] of [10, 16] */,
    __global const float* restrict p1 /* buffer[d0] of [128] */,
    __global float* restrict p2 /* buffer[d0d1] of [10, 8] */,
    const int item) {
    const int column_block = item % 1;
    const int row_block = item / 1 % 1;
    const int i0 = item / 1;
    const int first_row = row_block * 12;
    const int row_count = min(12, 10 - first_row);

    const int first_tile = column_block * 1;
    const int last_tile = first_tile + 1;
    for (int tile = max(first_tile - 0, 0); tile < min(last_tile - 0, 1); ++tile) {
        __global const float* right = p1 + (tile) * 128;
        for (int r = 0; r < row_count; r += 6) {
            float8 result[6];
            const int valid_rows = min(6, row_count - r);
            __global const float* a0 = p0 + (first_row + min(r + 0, row_count - 1)) * 16;
            __global const float* a1 = p0 + (first_row + min(r + 1, row_count - 1)) * 16;
            __global const float* a2 = p0 + (first_row + min(r + 2, row_count - 1)) * 16;
            __global const float* a3 = p0 + (first_row + min(r + 3, row_count - 1)) * 16;
            __global const float* a4 = p0 + (first_row + min(r + 4, row_count - 1)) * 16;
            __global const float* a5 = p0 + (first_row + min(r + 5, row_count - 1)) * 16;
            float8 c0_0 = 0.0f;
            float8 c1_0 = 0.0f;
            float8 c2_0 = 0.0f;
            float8 c3_0 = 0.0f;
            float8 c4_0 = 0.0f;
            float8 c5_0 = 0.0f;
            __global const float* next = right + 128;
            for (int k = 0; k < 16; ++k) {
                SMR_PREFETCH_LATER(next + k * 16);
                const float8 b0 = *(__global const smr_float8*)(right + k * 8 + 0);
                c0_0 += a0[k] * b0;
                c1_0 += a1[k] * b0;
                c2_0 += a2[k] * b0;
                c3_0 += a3[k] * b0;
                c4_0 += a4[k] * b0;
                c5_0 += a5[k] * b0;
            }

            result[0] = c0_0;
            result[1] = c1_0;
            result[2] = c2_0;
            result[3] = c3_0;
            result[4] = c4_0;
            result[5] = c5_0;
#pragma unroll
            for (int i = 0; i < 6; ++i) if (i < valid_rows) {
                const int i1 = first_row + r + i;
                const float* accumulated = (const float*)(result + i * 1);
     {
         {
            *(__global float8*)(p2 + i1 * 8) = (*(const smr_float8*)(accumulated + 0));
        }
    }
            }
        }
    }
}
#endif
// A persistent kernel with task counters: kernels of which some need what others make, in one launch. Each work-group goes
// through the kernels in their order and takes one work-item after the other, as soon as all is done that the work-item
// needs. No work-group holds a work-item that it has not begun. A work-group that has waited for too many polls, because
// another one was preempted, leaves the rest to the others, unless it is the last one. The last work-group to leave resets
// all counters.
__kernel void smr_kernel(
    __global const float* p0 /* buffer[d0d1] of [10, 8] */,
    __global const float* p1 /* buffer[d0] of [128] */,
    __global float* p2 /* buffer[d1d0] of [10, 16] */,
    __global float* p3 /* buffer[d0d1] of [10, 16] */,
    __global const float* p4 /* buffer[d0] of [128] */,
    __global float* p5 /* buffer[d0d1] of [10, 8] */,
    __global int* p6 /* buffer[d0] of [144] */) {

    volatile __global atomic_int* state = (volatile __global atomic_int*)p6;
    int active = 0;
    if (atomic_load_explicit(state + 16, memory_order_relaxed, memory_scope_device) == 0) {
        active = 1;
        atomic_fetch_add_explicit(state + 0, 1, memory_order_relaxed, memory_scope_device);
    }
    while (active != 0) {
        int stuck = 0;
        if (!stuck) {
            while (atomic_load_explicit(state + 48, memory_order_relaxed, memory_scope_device) < 1) {
const int item = atomic_fetch_add_explicit(state + 48, 1, memory_order_relaxed, memory_scope_device);
                if (item >= 1) break;
                smr_part_46c0f54c28aa(p0, p1, p2, item);
                atomic_fetch_add_explicit(state + 64, 1, memory_order_release, memory_scope_device);
            }
        }
        if (!stuck) {
            while (atomic_load_explicit(state + 80, memory_order_relaxed, memory_scope_device) < 16) {
                for (int polls = 0; !stuck; ++polls) {
                    if (atomic_load_explicit(state + 64, memory_order_acquire, memory_scope_device) >= 1) break;
                    stuck = polls == 102;
                }
                if (stuck) break;
const int item = atomic_fetch_add_explicit(state + 80, 1, memory_order_relaxed, memory_scope_device);
                if (item >= 16) break;
                smr_part_cc786ef09398(p2, p3, item);
                atomic_fetch_add_explicit(state + 96, 1, memory_order_release, memory_scope_device);
            }
        }
        if (!stuck) {
            while (atomic_load_explicit(state + 112, memory_order_relaxed, memory_scope_device) < 1) {
                for (int polls = 0; !stuck; ++polls) {
                    if (atomic_load_explicit(state + 96, memory_order_acquire, memory_scope_device) >= 16) break;
                    stuck = polls == 102;
                }
                if (stuck) break;
const int item = atomic_fetch_add_explicit(state + 112, 1, memory_order_relaxed, memory_scope_device);
                if (item >= 1) break;
                smr_part_6c04e55af933(p3, p4, p5, item);
                atomic_fetch_add_explicit(state + 128, 1, memory_order_release, memory_scope_device);
            }
        }
        if (!stuck) break;
        active = atomic_load_explicit(state + 0, memory_order_relaxed, memory_scope_device);
        while (active > 1 && !atomic_compare_exchange_strong_explicit(state + 0, &active, active - 1, memory_order_relaxed, memory_order_relaxed, memory_scope_device)) {}
        if (active > 1) {
            if (stuck) atomic_store_explicit(state + 16, 1, memory_order_relaxed, memory_scope_device);
            active = 0;
        }
    }
    if (atomic_fetch_add_explicit(state + 32, 1, memory_order_acq_rel, memory_scope_device) == (int)get_num_groups(0) - 1) {
        for (int i = 0; i < 9; ++i) atomic_store_explicit(state + i * 16, 0, memory_order_relaxed, memory_scope_device);
    }
}
