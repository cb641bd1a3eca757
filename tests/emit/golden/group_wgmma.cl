// k0_contraction: global (32000,), local (64,)
// Halves of NVIDIA's devices, four at a time. OpenCL's own functions promise no more than the alignment of one half, so the
// compiler moves halves one by one; the places that the engine takes these for are aligned as the whole vector.
#ifndef SMR_HALVES_PTX
#define SMR_HALVES_PTX
static inline float2 smr_floats(uint both) {
    float2 x;
    asm("{ .reg .b16 low, high; mov.b32 { low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
        : "=f"(x.s0), "=f"(x.s1) : "r"(both));
    return x;
}
static inline uint smr_halves(float low, float high) {
    uint both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
static inline float4 smr_floats4(uint2 bits) { return (float4)(smr_floats(bits.s0), smr_floats(bits.s1)); }
static inline uint2 smr_halves4(float4 x) { return (uint2)(smr_halves(x.s0, x.s1), smr_halves(x.s2, x.s3)); }
static inline float4 smr_load_scattered(__global const half* p) {
    return (float4)(vload_half(0, p), vload_half(1, p), vload_half(2, p), vload_half(3, p));
}
static inline void smr_store_scattered(float4 x, __global half* p) {
    vstore_half_rte(x.s0, 0, p);
    vstore_half_rte(x.s1, 1, p);
    vstore_half_rte(x.s2, 2, p);
    vstore_half_rte(x.s3, 3, p);
}
#undef smr_vload_half4
#undef smr_vstore_half4_rte
#define smr_vload_half4(I, P) smr_load_scattered((P) + 4 * (I))
#define smr_vstore_half4_rte(X, I, P) smr_store_scattered(X, (P) + 4 * (I))
static inline float4 smr_load_half4_where(int counts, __global const half* p) {
    uint2 bits = (uint2)(0);
    if (counts) bits = *(__global const uint2*)p;
    return smr_floats4(bits);
}
#define vload_half4(I, P) smr_floats4(((__global const uint2*)(P))[I])
#define vstore_half4_rte(X, I, P) ((__global uint2*)(P))[I] = smr_halves4(X)
#endif
// Contractions in registers, for textures and for devices without wide vectors. A work-item computes 4 rows by
// 4 columns. It reads both factors through their index maps; a texel of the left factor serves four steps of k.

__kernel void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1] of [1000, 8] */,
    __global const half* restrict p1 /* buffer[d0d1] of [8, 512] */,
    __global half* restrict p2 /* buffer[d0d1] of [1000, 512] */) {
    const int item = (int)get_global_id(0);
    if (item >= 32000) return;
    const int i0 = item % 128;
    const int i1 = item / 128 % 250;
    const int i2 = item / 32000;
    const int i3 = min(i1 * 4 + 0, 999);
    const int i4 = min(i1 * 4 + 1, 999);
    const int i5 = min(i1 * 4 + 2, 999);
    const int i6 = min(i1 * 4 + 3, 999);
    float4 t1 = 0.0f;
    float4 t2 = 0.0f;
    float4 t3 = 0.0f;
    float4 t4 = 0.0f;
    for (int i7 = 0; i7 < 2; ++i7) {
        const float4 t5 = *(__global const float4*)(p0 + (i3 * 8 + i7 * 4));
        const float4 t6 = *(__global const float4*)(p0 + (i4 * 8 + i7 * 4));
        const float4 t7 = *(__global const float4*)(p0 + (i5 * 8 + i7 * 4));
        const float4 t8 = *(__global const float4*)(p0 + (i6 * 8 + i7 * 4));
        const float4 t9 = vload_half4(0, p1 + (i0 * 4 + i7 * 2048));
        t1 += t5.s0 * t9;
        t2 += t6.s0 * t9;
        t3 += t7.s0 * t9;
        t4 += t8.s0 * t9;
        const float4 t10 = vload_half4(0, p1 + (i0 * 4 + i7 * 2048 + 512));
        t1 += t5.s1 * t10;
        t2 += t6.s1 * t10;
        t3 += t7.s1 * t10;
        t4 += t8.s1 * t10;
        const float4 t11 = vload_half4(0, p1 + (i0 * 4 + i7 * 2048 + 1024));
        t1 += t5.s2 * t11;
        t2 += t6.s2 * t11;
        t3 += t7.s2 * t11;
        t4 += t8.s2 * t11;
        const float4 t12 = vload_half4(0, p1 + (i0 * 4 + i7 * 2048 + 1536));
        t1 += t5.s3 * t12;
        t2 += t6.s3 * t12;
        t3 += t7.s3 * t12;
        t4 += t8.s3 * t12;
    }
     {
         {
             {
                vstore_half4_rte(t1, 0, p2 + (i0 * 4 + i3 * 512));
            }
        }
    }
     {
         {
             {
                vstore_half4_rte(t2, 0, p2 + (i0 * 4 + i4 * 512));
            }
        }
    }
     {
         {
             {
                vstore_half4_rte(t3, 0, p2 + (i0 * 4 + i5 * 512));
            }
        }
    }
     {
         {
             {
                vstore_half4_rte(t4, 0, p2 + (i0 * 4 + i6 * 512));
            }
        }
    }
}

// k1_contraction: global (16384,), local (128,)
// Halves of NVIDIA's devices, four at a time. OpenCL's own functions promise no more than the alignment of one half, so the
// compiler moves halves one by one; the places that the engine takes these for are aligned as the whole vector.
#ifndef SMR_HALVES_PTX
#define SMR_HALVES_PTX
static inline float2 smr_floats(uint both) {
    float2 x;
    asm("{ .reg .b16 low, high; mov.b32 { low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
        : "=f"(x.s0), "=f"(x.s1) : "r"(both));
    return x;
}
static inline uint smr_halves(float low, float high) {
    uint both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
static inline float4 smr_floats4(uint2 bits) { return (float4)(smr_floats(bits.s0), smr_floats(bits.s1)); }
static inline uint2 smr_halves4(float4 x) { return (uint2)(smr_halves(x.s0, x.s1), smr_halves(x.s2, x.s3)); }
static inline float4 smr_load_scattered(__global const half* p) {
    return (float4)(vload_half(0, p), vload_half(1, p), vload_half(2, p), vload_half(3, p));
}
static inline void smr_store_scattered(float4 x, __global half* p) {
    vstore_half_rte(x.s0, 0, p);
    vstore_half_rte(x.s1, 1, p);
    vstore_half_rte(x.s2, 2, p);
    vstore_half_rte(x.s3, 3, p);
}
#undef smr_vload_half4
#undef smr_vstore_half4_rte
#define smr_vload_half4(I, P) smr_load_scattered((P) + 4 * (I))
#define smr_vstore_half4_rte(X, I, P) smr_store_scattered(X, (P) + 4 * (I))
static inline float4 smr_load_half4_where(int counts, __global const half* p) {
    uint2 bits = (uint2)(0);
    if (counts) bits = *(__global const uint2*)p;
    return smr_floats4(bits);
}
#define vload_half4(I, P) smr_floats4(((__global const uint2*)(P))[I])
#define vstore_half4_rte(X, I, P) ((__global uint2*)(P))[I] = smr_halves4(X)
#endif
// Contractions for GPUs with local memory. A work-group owns 64 x 64 sums. Tiles of both factors, 64 deep, lie in local
// memory; the next tiles are loaded while these are multiplied.
//   1. All work-items compute what the rows of the left factor need, a team for each row: the statistics of a normalisation,
//      or the scores of an attention and their softmax.
//   2. 1 slices of sub-groups of 128 work-items share the depth of a tile (slice-K). A sub-group owns 64 x 64 sums.
//   3. The sums of several slices are added in local memory; those of one slice stay in registers. Every work-item then
//      runs the epilogue of some sums, four columns at a time.
// The matrix unit nvidia_wgmma_f16 multiplies the tiles.
#ifndef SMR_TARGET_IS_SET
#error "these kernels are for the PTX target sm_90a, which this runtime does not set"
#endif
#ifndef SMR_UNIT_nvidia_wgmma_f16
#define SMR_UNIT_nvidia_wgmma_f16
typedef ushort __attribute__((may_alias)) nvidia_wgmma_f16_element; // sums take the place of tiles in local memory
typedef float4 nvidia_wgmma_f16_sums;
#define nvidia_wgmma_f16_no_sums ((nvidia_wgmma_f16_sums)(0))
// Elements of one place of the reduction side by side: `own` is a row.
static inline uint nvidia_wgmma_f16_at(uint own, uint k) {
    return own * 64 + (k / 8 ^ own % 8) * 8 + k % 8;
}
// Columns side by side, 64 in a row; the rows of `step` places of the reduction lie together.
static inline uint nvidia_wgmma_f16_across(uint k, uint own, uint step) {
    return (own / 64 * step + k) * 64 + (own % 64 / 8 ^ k % 8) * 8 + own % 8;
}
static inline __local nvidia_wgmma_f16_element* nvidia_wgmma_f16_aligned(__local float* memory) {
    return (__local nvidia_wgmma_f16_element*)(memory + (-(uint)(size_t)memory & 1023) / 4);
}
// A matrix in local memory as the instructions name it; `leading` is in units of 16 bytes.
static inline ulong nvidia_wgmma_f16_matrix(__local const nvidia_wgmma_f16_element* tile, uint leading) {
    return 1ul << 62 | 64ul << 32 | (ulong)leading << 16 | (ulong)((uint)(size_t)tile >> 4);
}
static inline ulong nvidia_wgmma_f16_right_matrix(__local const nvidia_wgmma_f16_element* tile, int k, int step, int across) {
    return across ? nvidia_wgmma_f16_matrix(tile, step * 8) + k * 8 : nvidia_wgmma_f16_matrix(tile, 1) + k / 8;
}
static inline uint nvidia_wgmma_f16_two(float low, float high) {
    uint both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
#define nvidia_wgmma_f16_keep(P, X) *(P) = (ushort)nvidia_wgmma_f16_two((X), 0.0f)
static inline void nvidia_wgmma_f16_keep4(__local nvidia_wgmma_f16_element* at, float4 x) {
    *(__local uint2*)at = (uint2)(nvidia_wgmma_f16_two(x.s0, x.s1), nvidia_wgmma_f16_two(x.s2, x.s3));
}
static inline void nvidia_wgmma_f16_store(__local float* tile, int stride, int lane, nvidia_wgmma_f16_sums c) {
    __local float2* at = (__local float2*)(tile + (lane / 4 % 8 * 1 + lane / 32 % 4 * 16) * stride + lane / 1 % 4 * 2);
    at[0] = c.s01;
    at[(8 * stride + 0) / 2] = c.s23;
}
// Copies 16 bytes from global to local memory, or writes zeros there where `counts` is 0.
static inline void nvidia_wgmma_f16_copy(__local nvidia_wgmma_f16_element* to, __global const nvidia_wgmma_f16_element* from, int counts) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 : : "r"((uint)(size_t)to), "l"(from), "r"(counts ? 16 : 0) : "memory");
}
#ifndef SMR_PREFETCH
#define SMR_PREFETCH(P) asm volatile("prefetch.global.L2 [%0];" : : "l"(P))
#endif
#define nvidia_wgmma_f16_commit() asm volatile("cp.async.commit_group;" : : : "memory")
#define nvidia_wgmma_f16_wait(COUNT) asm volatile("cp.async.wait_group " #COUNT ";" : : : "memory")
// What work-items have written to local memory is there for the unit behind the next barrier.
#define nvidia_wgmma_f16_written() asm volatile("fence.proxy.async.shared::cta;" : : : "memory")
#define nvidia_wgmma_f16_begin() asm volatile("//@ wgmma.fence.sync.aligned;" : : : "memory")
#define nvidia_wgmma_f16_end() asm volatile("//@ wgmma.commit_group.sync.aligned;" : : : "memory")
#define nvidia_wgmma_f16_running(COUNT) asm volatile("//@ wgmma.wait_group.sync.aligned " #COUNT ";" : : : "memory")
#endif
#ifndef SMR_UNIT_nvidia_wgmma_f16_64
#define SMR_UNIT_nvidia_wgmma_f16_64
#define nvidia_wgmma_f16_registers_64 "+f"(c0.s0), "+f"(c0.s1), "+f"(c0.s2), "+f"(c0.s3), "+f"(c1.s0), "+f"(c1.s1), "+f"(c1.s2), "+f"(c1.s3), "+f"(c2.s0), "+f"(c2.s1), "+f"(c2.s2), "+f"(c2.s3), "+f"(c3.s0), "+f"(c3.s1), "+f"(c3.s2), "+f"(c3.s3), "+f"(c4.s0), "+f"(c4.s1), "+f"(c4.s2), "+f"(c4.s3), "+f"(c5.s0), "+f"(c5.s1), "+f"(c5.s2), "+f"(c5.s3), "+f"(c6.s0), "+f"(c6.s1), "+f"(c6.s2), "+f"(c6.s3), "+f"(c7.s0), "+f"(c7.s1), "+f"(c7.s2), "+f"(c7.s3)
#define nvidia_wgmma_f16_product_64(ACROSS, A, B, K, STEP) \
    asm volatile("//@ wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 { %0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, 1, 1, 1, 0, " #ACROSS ";" \
        : nvidia_wgmma_f16_registers_64 : "l"(nvidia_wgmma_f16_matrix(A, 1) + (K) / 8), "l"(nvidia_wgmma_f16_right_matrix(B, K, STEP, ACROSS)))
#define nvidia_wgmma_f16_complete_64() asm volatile("//@ wgmma.wait_group.sync.aligned 0;" : nvidia_wgmma_f16_registers_64 : : "memory")
#endif

__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void smr_kernel(
    __global const half* restrict p0 /* buffer[d0] of [512] */,
    __global const half* restrict p1 /* buffer[d0d1] of [1000, 512] */,
    __global const half* restrict p2 /* buffer[d0d1] of [512, 512] */,
    __global float* restrict p3 /* buffer[d0d1] of [1000, 512] */) {
    __local float memory[24832] __attribute__((aligned(16)));
    const int group = ((int)get_group_id(0)) & 0x7fffffff;
    const int thread = (int)get_local_id(0) & 127;
    const int column_tile = group % 8;
    const int first_row = group / 8 % 16 * 64;
    const int i0 = group / 128;
    const int lane = thread % 128;
    const int warp = thread / 128 % 1;
    const int slice = thread / 128;
    const int warp_row = warp / 1 * 64;
    const int warp_column = warp % 1 * 64;
     {
    }


    nvidia_wgmma_f16_sums c0 = nvidia_wgmma_f16_no_sums;
    nvidia_wgmma_f16_sums c1 = nvidia_wgmma_f16_no_sums;
    nvidia_wgmma_f16_sums c2 = nvidia_wgmma_f16_no_sums;
    nvidia_wgmma_f16_sums c3 = nvidia_wgmma_f16_no_sums;
    nvidia_wgmma_f16_sums c4 = nvidia_wgmma_f16_no_sums;
    nvidia_wgmma_f16_sums c5 = nvidia_wgmma_f16_no_sums;
    nvidia_wgmma_f16_sums c6 = nvidia_wgmma_f16_no_sums;
    nvidia_wgmma_f16_sums c7 = nvidia_wgmma_f16_no_sums;
    __local nvidia_wgmma_f16_element* const left_tiles = nvidia_wgmma_f16_aligned(memory);
    __local nvidia_wgmma_f16_element* const right_tiles = left_tiles + 24576;
    if (0 + 0 < 8) {
        const int step = 0 + 0;
            __local nvidia_wgmma_f16_element* const left_into = left_tiles + (step % 6) * 4096;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot / 8;
                const int i2 = min(first_row + at, 999);
                const int depth = step * 8 + slot % 8;
                const int i3 = depth;
                nvidia_wgmma_f16_copy(left_into + nvidia_wgmma_f16_at(slot / 8, (slot % 8) * 8), (__global const nvidia_wgmma_f16_element*)(p1 + (i2 * 512 + i3 * 8)), 1);
            }
        }
    }
            __local nvidia_wgmma_f16_element* const right_into = right_tiles + (step % 6) * 4096;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot % 8;
                const int i4 = min((column_tile * 64) / 8 + at, 63);
                const int depth = step * 64 + slot / 8;
                const int i5 = depth;
                nvidia_wgmma_f16_copy(right_into + nvidia_wgmma_f16_across(slot / 8, (slot % 8) * 8, 64), (__global const nvidia_wgmma_f16_element*)(p2 + (i4 * 8 + i5 * 512)), 1);
            }
        }
    }

    }
    nvidia_wgmma_f16_commit();
    if (0 + 1 < 8) {
        const int step = 0 + 1;
            __local nvidia_wgmma_f16_element* const left_into = left_tiles + (step % 6) * 4096;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot / 8;
                const int i2 = min(first_row + at, 999);
                const int depth = step * 8 + slot % 8;
                const int i3 = depth;
                nvidia_wgmma_f16_copy(left_into + nvidia_wgmma_f16_at(slot / 8, (slot % 8) * 8), (__global const nvidia_wgmma_f16_element*)(p1 + (i2 * 512 + i3 * 8)), 1);
            }
        }
    }
            __local nvidia_wgmma_f16_element* const right_into = right_tiles + (step % 6) * 4096;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot % 8;
                const int i4 = min((column_tile * 64) / 8 + at, 63);
                const int depth = step * 64 + slot / 8;
                const int i5 = depth;
                nvidia_wgmma_f16_copy(right_into + nvidia_wgmma_f16_across(slot / 8, (slot % 8) * 8, 64), (__global const nvidia_wgmma_f16_element*)(p2 + (i4 * 8 + i5 * 512)), 1);
            }
        }
    }

    }
    nvidia_wgmma_f16_commit();
    if (0 + 2 < 8) {
        const int step = 0 + 2;
            __local nvidia_wgmma_f16_element* const left_into = left_tiles + (step % 6) * 4096;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot / 8;
                const int i2 = min(first_row + at, 999);
                const int depth = step * 8 + slot % 8;
                const int i3 = depth;
                nvidia_wgmma_f16_copy(left_into + nvidia_wgmma_f16_at(slot / 8, (slot % 8) * 8), (__global const nvidia_wgmma_f16_element*)(p1 + (i2 * 512 + i3 * 8)), 1);
            }
        }
    }
            __local nvidia_wgmma_f16_element* const right_into = right_tiles + (step % 6) * 4096;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot % 8;
                const int i4 = min((column_tile * 64) / 8 + at, 63);
                const int depth = step * 64 + slot / 8;
                const int i5 = depth;
                nvidia_wgmma_f16_copy(right_into + nvidia_wgmma_f16_across(slot / 8, (slot % 8) * 8, 64), (__global const nvidia_wgmma_f16_element*)(p2 + (i4 * 8 + i5 * 512)), 1);
            }
        }
    }

    }
    nvidia_wgmma_f16_commit();
    if (0 + 3 < 8) {
        const int step = 0 + 3;
            __local nvidia_wgmma_f16_element* const left_into = left_tiles + (step % 6) * 4096;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot / 8;
                const int i2 = min(first_row + at, 999);
                const int depth = step * 8 + slot % 8;
                const int i3 = depth;
                nvidia_wgmma_f16_copy(left_into + nvidia_wgmma_f16_at(slot / 8, (slot % 8) * 8), (__global const nvidia_wgmma_f16_element*)(p1 + (i2 * 512 + i3 * 8)), 1);
            }
        }
    }
            __local nvidia_wgmma_f16_element* const right_into = right_tiles + (step % 6) * 4096;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot % 8;
                const int i4 = min((column_tile * 64) / 8 + at, 63);
                const int depth = step * 64 + slot / 8;
                const int i5 = depth;
                nvidia_wgmma_f16_copy(right_into + nvidia_wgmma_f16_across(slot / 8, (slot % 8) * 8, 64), (__global const nvidia_wgmma_f16_element*)(p2 + (i4 * 8 + i5 * 512)), 1);
            }
        }
    }

    }
    nvidia_wgmma_f16_commit();
    {
        const int step = 0;


    }
    for (int turn = 0; turn < 8; ++turn) {
        __local nvidia_wgmma_f16_element* left = left_tiles + (turn % 6) * 4096;
        __local nvidia_wgmma_f16_element* right = right_tiles + (turn % 6) * 4096;


        nvidia_wgmma_f16_wait(3);
        nvidia_wgmma_f16_written();
        barrier(CLK_LOCAL_MEM_FENCE);
        if (turn + 4 < 8) {
            const int step = turn + 4;
            __local nvidia_wgmma_f16_element* const left_into = left_tiles + (step % 6) * 4096;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot / 8;
                const int i2 = min(first_row + at, 999);
                const int depth = step * 8 + slot % 8;
                const int i3 = depth;
                nvidia_wgmma_f16_copy(left_into + nvidia_wgmma_f16_at(slot / 8, (slot % 8) * 8), (__global const nvidia_wgmma_f16_element*)(p1 + (i2 * 512 + i3 * 8)), 1);
            }
        }
    }
            __local nvidia_wgmma_f16_element* const right_into = right_tiles + (step % 6) * 4096;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot % 8;
                const int i4 = min((column_tile * 64) / 8 + at, 63);
                const int depth = step * 64 + slot / 8;
                const int i5 = depth;
                nvidia_wgmma_f16_copy(right_into + nvidia_wgmma_f16_across(slot / 8, (slot % 8) * 8, 64), (__global const nvidia_wgmma_f16_element*)(p2 + (i4 * 8 + i5 * 512)), 1);
            }
        }
    }

        }
        nvidia_wgmma_f16_commit();
        if (turn + 1 < 8) {
            const int step = turn + 1;


        }
        const int depth = slice * 64;
        __local const nvidia_wgmma_f16_element* a = left + warp_row * 64;
        __local const nvidia_wgmma_f16_element* b = right + warp_column * 64;
        nvidia_wgmma_f16_begin();
        nvidia_wgmma_f16_product_64(1, a, b, depth + 0, 64);
        nvidia_wgmma_f16_product_64(1, a, b, depth + 16, 64);
        nvidia_wgmma_f16_product_64(1, a, b, depth + 32, 64);
        nvidia_wgmma_f16_product_64(1, a, b, depth + 48, 64);
        nvidia_wgmma_f16_end();
        nvidia_wgmma_f16_running(1);

    }
    nvidia_wgmma_f16_complete_64();

    barrier(CLK_LOCAL_MEM_FENCE);
    {
        __local float* sums = memory + slice * 4608;
        nvidia_wgmma_f16_store(sums + (warp_row + 0) * 72 + warp_column + 0, 72, lane, c0);
        nvidia_wgmma_f16_store(sums + (warp_row + 0) * 72 + warp_column + 8, 72, lane, c1);
        nvidia_wgmma_f16_store(sums + (warp_row + 0) * 72 + warp_column + 16, 72, lane, c2);
        nvidia_wgmma_f16_store(sums + (warp_row + 0) * 72 + warp_column + 24, 72, lane, c3);
        nvidia_wgmma_f16_store(sums + (warp_row + 0) * 72 + warp_column + 32, 72, lane, c4);
        nvidia_wgmma_f16_store(sums + (warp_row + 0) * 72 + warp_column + 40, 72, lane, c5);
        nvidia_wgmma_f16_store(sums + (warp_row + 0) * 72 + warp_column + 48, 72, lane, c6);
        nvidia_wgmma_f16_store(sums + (warp_row + 0) * 72 + warp_column + 56, 72, lane, c7);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int first_place = thread; first_place < 1024; first_place += 512) {
        const int first_of_turns = first_row + first_place / 16;
        const int tile_column = first_place % 16 * 4;
if (first_of_turns < 1000) {
{
                const int i6 = (column_tile - 0) * 16 + tile_column / 4;
{
                float4 kept0[4];
                #pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int place = first_place + e * 128;
                    const int tile_row = place / 16;
                    const int i1 = first_row + tile_row < 1000 ? first_row + tile_row : first_of_turns;
        __local const float* sums = memory + place / 16 * 72 + place % 16 * 4;
        float4 finished = *(__local const float4*)sums;

     {
        const float4 t1 = vload_half4(0, p0 + i6 * 4);
        const float4 t2 = (finished + t1);
        const float4 t3 = smr_max4(t2, (float4)(0.0f));
        kept0[e] = t3;
    }
                }
                #pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int place = first_place + e * 128;
                    const int tile_row = place / 16;
                    const int i1 = first_row + tile_row;
if (i1 < 1000) {
     {
        *(__global float4*)(p3 + (i1 * 512 + i6 * 4)) = kept0[e];
    }
                    }
                }
                }
            }
        }
    }
}
