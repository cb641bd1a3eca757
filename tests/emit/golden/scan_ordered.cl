// k0_contraction: global (1,), local (1,)
#ifndef smr_part_b955f17145a2_DEFINED
#define smr_part_b955f17145a2_DEFINED
// Contractions for CPUs. A work-item owns a block of rows of the result and a range of its columns.
//   1. Rows of the left factor that are not contiguous in memory, or that have to be computed (normalised rows,
//      padded convolution windows), are staged into a panel that stays in cache.
//   2. The right factor lies in packed panels of 8 columns: constants were packed when the plan was made, other
//      factors are packed here.
//   3. Register tiles of 3 x 8 sums accumulate the products.
//   4. The epilogue takes the rows of a finished register tile and writes them with vector stores.

static void smr_part_b955f17145a2(
    __global const float* restrict p0 /* buffer[d0d1d2] of [3, 1, 4] */,
    __global const float* restrict p1 /* buffer[d0] of [32] */,
    __global float* restrict p2 /* buffer[d0d1d2d3] of [3, 1, 1, 4] */,
    const int item) {
    const int column_block = item % 1;
    const int row_block = item / 1 % 1;
    const int i0 = item / 1;
    const int first_row = row_block * 3;
    const int row_count = min(3, 3 - first_row);

    const int first_tile = column_block * 1;
    const int last_tile = first_tile + 1;
    for (int tile = max(first_tile - 0, 0); tile < min(last_tile - 0, 1); ++tile) {
        __global const float* right = p1 + (tile) * 32;
        for (int r = 0; r < row_count; r += 3) {
            float8 result[3];
            const int valid_rows = min(3, row_count - r);
            __global const float* a0 = p0 + (first_row + min(r + 0, row_count - 1)) * 4;
            __global const float* a1 = p0 + (first_row + min(r + 1, row_count - 1)) * 4;
            __global const float* a2 = p0 + (first_row + min(r + 2, row_count - 1)) * 4;
            float8 c0_0 = 0.0f;
            float8 c1_0 = 0.0f;
            float8 c2_0 = 0.0f;
            __global const float* next = right + 32;
            for (int k = 0; k < 4; ++k) {
                SMR_PREFETCH_LATER(next + k * 16);
                const float8 b0 = *(__global const smr_float8*)(right + k * 8 + 0);
                c0_0 += a0[k] * b0;
                c1_0 += a1[k] * b0;
                c2_0 += a2[k] * b0;
            }

            result[0] = c0_0;
            result[1] = c1_0;
            result[2] = c2_0;
#pragma unroll
            for (int i = 0; i < 3; ++i) if (i < valid_rows) {
                const int i1 = first_row + r + i;
                const float* accumulated = (const float*)(result + i * 1);
     {
         {
            for (int i4 = 0; i4 < 4; ++i4) {
                p2[(i1 * 4 + i4)] = accumulated[0 + i4];
            }
        }
    }
            }
        }
    }
}
#endif
#ifndef smr_part_8a486854470c_DEFINED
#define smr_part_8a486854470c_DEFINED
// Recurrences: the steps run one after the other inside the kernel; each stores its results in memory, where the next step
// reads them. On CPUs a work-item runs all steps, or its share of them. On GPUs the work-items of a work-group share the
// elements of a step, with a barrier behind each tensor.

static void smr_part_8a486854470c(
    __global float* restrict p0 /* buffer[d0d1d2d3] of [3, 1, 1, 4] */,
    __global const float* restrict p1 /* buffer[d0d1d2d3] of [3, 1, 1, 4] */,
    __global const float* restrict p2 /* buffer[d0d1d2] of [1, 4, 4] */,
    const int item) {
    float step0[20] __attribute__((aligned(64)));
    float step1[20] __attribute__((aligned(64)));
    float step2[20] __attribute__((aligned(64)));
    float step3[20] __attribute__((aligned(64)));
    for (int i1 = 0; i1 < 3; ++i1) {
         {
            for (int i2 = 0; i2 < 4; ++i2) {
                float t1;
                if (i1 == 0) {
                    t1 = 0.0f;
                }
                else {
                    const float t2 = p0[(i1 * 4 + i2 + -4)];
                    t1 = t2;
                }
                step0[i2] = t1;
            }
        }
         {
            for (int i3 = 0; i3 < 4; ++i3) {
                const float t3 = p1[(i1 * 4 + i3)];
                float t4 = 0.0f;
                for (int i4 = 0; i4 < 4; ++i4) {
                    const float t5 = step0[i4];
                    const float t6 = p2[(i3 * 4 + i4)];
                    t4 += t5 * t6;
                }
                const float t7 = (t3 + t4);
                step1[i3] = t7;
            }
        }
         {
            for (int i5 = 0; i5 < 4; ++i5) {
                const float t8 = step1[i5];
                step2[i5] = t8;
            }
        }
         {
            for (int i6 = 0; i6 < 4; ++i6) {
                const float t9 = step2[i6];
                const float t10 = smr_tanh1(t9);
                step3[i6] = t10;
            }
        }
         {
            for (int i7 = 0; i7 < 4; ++i7) {
                const float t11 = step3[i7];
                p0[(i1 * 4 + i7)] = t11;
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
    __global const float* p0 /* buffer[d0d1d2] of [3, 1, 4] */,
    __global const float* p1 /* buffer[d0] of [32] */,
    __global float* p2 /* buffer[d0d1d2d3] of [3, 1, 1, 4] */,
    __global float* p3 /* buffer[d0d1d2d3] of [3, 1, 1, 4] */,
    __global const float* p4 /* buffer[d0d1d2] of [1, 4, 4] */,
    __global int* p5 /* buffer[d0] of [112] */) {

    volatile __global atomic_int* state = (volatile __global atomic_int*)p5;
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
                smr_part_b955f17145a2(p0, p1, p2, item);
                atomic_fetch_add_explicit(state + 64, 1, memory_order_release, memory_scope_device);
            }
        }
        if (!stuck) {
            while (atomic_load_explicit(state + 80, memory_order_relaxed, memory_scope_device) < 1) {
                for (int polls = 0; !stuck; ++polls) {
                    if (atomic_load_explicit(state + 64, memory_order_acquire, memory_scope_device) >= 1) break;
                    stuck = polls == 16;
                }
                if (stuck) break;
const int item = atomic_fetch_add_explicit(state + 80, 1, memory_order_relaxed, memory_scope_device);
                if (item >= 1) break;
                smr_part_8a486854470c(p3, p2, p4, item);
                atomic_fetch_add_explicit(state + 96, 1, memory_order_release, memory_scope_device);
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
        for (int i = 0; i < 7; ++i) atomic_store_explicit(state + i * 16, 0, memory_order_relaxed, memory_scope_device);
    }
}
