// k0_contraction: global (1152,), local (128,)
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
// Contractions for GPUs with local memory. A work-group owns 16 x 64 sums. Tiles of both factors, 64 deep, lie in local
// memory; the next tiles are loaded while these are multiplied.
//   1. All work-items compute what the rows of the left factor need, a team for each row: the statistics of a normalisation,
//      or the scores of an attention and their softmax.
//   2. 2 slices of sub-groups of 32 work-items share the depth of a tile (slice-K). A sub-group owns 16 x 32 sums.
//   3. The sums of several slices are added in local memory; those of one slice stay in registers. Every work-item then
//      runs the epilogue of some sums, four columns at a time.
// The matrix unit nvidia_f16 multiplies the tiles.
#ifndef SMR_UNIT_nvidia_f16
#define SMR_UNIT_nvidia_f16
typedef ushort __attribute__((may_alias)) nvidia_f16_element; // sums take the place of tiles in local memory
typedef float4 nvidia_f16_sums;
#define nvidia_f16_no_sums ((nvidia_f16_sums)(0))
#define nvidia_f16_mma(C, A, B)                                                                              \
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 { %0,%1,%2,%3}, { %4,%5,%6,%7}, { %8,%9}, { %0,%1,%2,%3};"  \
        : "+f"(C.s0), "+f"(C.s1), "+f"(C.s2), "+f"(C.s3) \
        : "r"(A.s0), "r"(A.s1), "r"(A.s2), "r"(A.s3), "r"(B.s0), "r"(B.s1))
typedef uint4 nvidia_f16_left;
typedef uint2 nvidia_f16_right;
static inline nvidia_f16_left nvidia_f16_load_left(__local const nvidia_f16_element* tile, int stride, int lane) {
    nvidia_f16_left a;
    const uint at = (uint)(size_t)(tile + lane % 16 * stride + lane / 16 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 { %0,%1,%2,%3}, [%4];"
                 : "=r"(a.s0), "=r"(a.s1), "=r"(a.s2), "=r"(a.s3) : "r"(at) : "memory");
    return a;
}
static inline void nvidia_f16_load_rights_turned(nvidia_f16_right* first, nvidia_f16_right* second, __local const nvidia_f16_element* tile, int stride, int lane) {
    uint4 b;
    const uint at = (uint)(size_t)(tile + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 { %0,%1,%2,%3}, [%4];"
                 : "=r"(b.s0), "=r"(b.s1), "=r"(b.s2), "=r"(b.s3) : "r"(at) : "memory");
    *first = b.s01;
    *second = b.s23;
}
static inline void nvidia_f16_load_rights(nvidia_f16_right* first, nvidia_f16_right* second, __local const nvidia_f16_element* tile, int stride, int lane) {
    uint4 b;
    const uint at = (uint)(size_t)(tile + lane % 16 * stride + lane / 16 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 { %0,%1,%2,%3}, [%4];"
                 : "=r"(b.s0), "=r"(b.s1), "=r"(b.s2), "=r"(b.s3) : "r"(at) : "memory");
    *first = b.s01;
    *second = b.s23;
}
#define nvidia_f16_multiply(PASS, C, A, B) nvidia_f16_mma(C, A, B)
static inline uint nvidia_f16_two(float low, float high) {
    uint both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
#define nvidia_f16_keep(P, X) *(P) = (ushort)nvidia_f16_two((X), 0.0f)
static inline void nvidia_f16_keep4(__local nvidia_f16_element* at, float4 x) {
    *(__local uint2*)at = (uint2)(nvidia_f16_two(x.s0, x.s1), nvidia_f16_two(x.s2, x.s3));
}
// Sums that a lane holds as the left factor that it holds.
static inline nvidia_f16_left nvidia_f16_chained(float x0, float x1, float x2, float x3, float x4, float x5, float x6, float x7) {
    return (nvidia_f16_left)(nvidia_f16_two(x0, x1), nvidia_f16_two(x2, x3), nvidia_f16_two(x4, x5), nvidia_f16_two(x6, x7));
}
static inline void nvidia_f16_store(__local float* tile, int stride, int lane, nvidia_f16_sums c) {
    __local float2* at = (__local float2*)(tile + (lane / 4 % 8 * 1) * stride + lane / 1 % 4 * 2);
    at[0] = c.s01;
    at[(8 * stride + 0) / 2] = c.s23;
}
// Copies 16 bytes from global to local memory, or writes zeros there where `counts` is 0.
static inline void nvidia_f16_copy(__local nvidia_f16_element* to, __global const nvidia_f16_element* from, int counts) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 : : "r"((uint)(size_t)to), "l"(from), "r"(counts ? 16 : 0) : "memory");
}
#ifndef SMR_PREFETCH
#define SMR_PREFETCH(P) asm volatile("prefetch.global.L2 [%0];" : : "l"(P))
#endif
#define nvidia_f16_commit() asm volatile("cp.async.commit_group;" : : : "memory")
#define nvidia_f16_wait(COUNT) asm volatile("cp.async.wait_group " #COUNT ";" : : : "memory")
#endif

__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void smr_kernel(
    __global const float* restrict p0 /* buffer[d0d1d2] of [2, 20, 64] */,
    __global const half* restrict p1 /* buffer[d0d1] of [64, 192] */,
    __global half* restrict p2 /* buffer[d0d1d2] of [2, 20, 32] */,
    __global half* restrict p3 /* buffer[d0d1d2] of [2, 20, 32] */,
    __global half* restrict p4 /* buffer[d0d1d2] of [2, 20, 32] */) {
    __local float memory[11520] __attribute__((aligned(16)));
    const int group = ((int)get_group_id(0)) & 0x7fffffff;
    const int thread = (int)get_local_id(0) & 127;
    const int column_tile = group % 3;
    const int first_row = group / 3 % 3 * 16;
    const int i0 = group / 9;
    const int lane = thread % 32;
    const int warp = thread / 32 % 2;
    const int slice = thread / 64;
    const int warp_row = warp / 2 * 16;
    const int warp_column = warp % 2 * 32;
     {
    }
    float4 left_next[2];

    nvidia_f16_sums c0 = nvidia_f16_no_sums;
    nvidia_f16_sums c1 = nvidia_f16_no_sums;
    nvidia_f16_sums c2 = nvidia_f16_no_sums;
    nvidia_f16_sums c3 = nvidia_f16_no_sums;
    __local nvidia_f16_element* const left_tiles = (__local nvidia_f16_element*)memory;
    __local nvidia_f16_element* const right_tiles = left_tiles + 4608;
    if (0 + 0 < 1) {
        const int step = 0 + 0;
            __local nvidia_f16_element* const right_into = right_tiles + (step % 4) * 4608;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot % 8;
                const int i4 = min((column_tile * 64) / 8 + at, 23);
                const int depth = step * 64 + slot / 8;
                const int i5 = depth;
                nvidia_f16_copy(right_into + (slot / 8) * 72 + (slot % 8) * 8, (__global const nvidia_f16_element*)(p1 + (i4 * 8 + i5 * 192)), 1);
            }
        }
    }

    }
    nvidia_f16_commit();
    if (0 + 1 < 1) {
        const int step = 0 + 1;
            __local nvidia_f16_element* const right_into = right_tiles + (step % 4) * 4608;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot % 8;
                const int i4 = min((column_tile * 64) / 8 + at, 23);
                const int depth = step * 64 + slot / 8;
                const int i5 = depth;
                nvidia_f16_copy(right_into + (slot / 8) * 72 + (slot % 8) * 8, (__global const nvidia_f16_element*)(p1 + (i4 * 8 + i5 * 192)), 1);
            }
        }
    }

    }
    nvidia_f16_commit();
    if (0 + 2 < 1) {
        const int step = 0 + 2;
            __local nvidia_f16_element* const right_into = right_tiles + (step % 4) * 4608;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot % 8;
                const int i4 = min((column_tile * 64) / 8 + at, 23);
                const int depth = step * 64 + slot / 8;
                const int i5 = depth;
                nvidia_f16_copy(right_into + (slot / 8) * 72 + (slot % 8) * 8, (__global const nvidia_f16_element*)(p1 + (i4 * 8 + i5 * 192)), 1);
            }
        }
    }

    }
    nvidia_f16_commit();
    {
        const int step = 0;
     {
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot / 16;
                const int i2 = min(first_row + at, 39);
                const int depth = step * 16 + slot % 16;
                const int i3 = depth;
                const float4 t1 = *(__global const float4*)(p0 + (i2 * 64 + i3 * 4));
                left_next[e] = t1;
            }
        }
    }

    }
    for (int turn = 0; turn < 1; ++turn) {
        __local nvidia_f16_element* left = left_tiles + (turn % 4) * 1152;
        __local nvidia_f16_element* right = right_tiles + (turn % 4) * 4608;
     {
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int slot = e * 128 + thread;
             {
                nvidia_f16_keep4(left + (slot / 16) * 72 + slot % 16 * 4 + 0, left_next[e]);
            }
        }
    }

        nvidia_f16_wait(2);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (turn + 3 < 1) {
            const int step = turn + 3;
            __local nvidia_f16_element* const right_into = right_tiles + (step % 4) * 4608;
     {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot % 8;
                const int i4 = min((column_tile * 64) / 8 + at, 23);
                const int depth = step * 64 + slot / 8;
                const int i5 = depth;
                nvidia_f16_copy(right_into + (slot / 8) * 72 + (slot % 8) * 8, (__global const nvidia_f16_element*)(p1 + (i4 * 8 + i5 * 192)), 1);
            }
        }
    }

        }
        nvidia_f16_commit();
        if (turn + 1 < 1) {
            const int step = turn + 1;
     {
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot / 16;
                const int i2 = min(first_row + at, 39);
                const int depth = step * 16 + slot % 16;
                const int i3 = depth;
                const float4 t1 = *(__global const float4*)(p0 + (i2 * 64 + i3 * 4));
                left_next[e] = t1;
            }
        }
    }

        }
        const int depth = slice * 32;
        #pragma unroll
        for (int k = 0; k < 32; k += 16) {
            __local const nvidia_f16_element* a = left + warp_row * 72 + depth + k;
            __local const nvidia_f16_element* b = right + (depth + k) * 72 + warp_column;
            const nvidia_f16_left a0 = nvidia_f16_load_left(a + 0, 72, lane);
            nvidia_f16_right b0, b1;
            nvidia_f16_load_rights(&b0, &b1, b + 0, 72, lane);
            nvidia_f16_right b2, b3;
            nvidia_f16_load_rights(&b2, &b3, b + 16, 72, lane);
            nvidia_f16_multiply(0, c0, a0, b0);
            nvidia_f16_multiply(0, c1, a0, b1);
            nvidia_f16_multiply(0, c2, a0, b2);
            nvidia_f16_multiply(0, c3, a0, b3);

        }
    }

    barrier(CLK_LOCAL_MEM_FENCE);
    {
        __local float* sums = memory + slice * 1088;
        nvidia_f16_store(sums + (warp_row + 0) * 68 + warp_column + 0, 68, lane, c0);
        nvidia_f16_store(sums + (warp_row + 0) * 68 + warp_column + 8, 68, lane, c1);
        nvidia_f16_store(sums + (warp_row + 0) * 68 + warp_column + 16, 68, lane, c2);
        nvidia_f16_store(sums + (warp_row + 0) * 68 + warp_column + 24, 68, lane, c3);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int first_place = thread; first_place < 256; first_place += 256) {
        const int first_of_turns = first_row + first_place / 16;
        const int tile_column = first_place % 16 * 4;
if (first_of_turns < 40) {
if (column_tile < 1) {
                const int i6 = (column_tile - 0) * 16 + tile_column / 4;
if (i6 < 8) {
                float4 kept0[2];
                #pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const int place = first_place + e * 128;
                    const int tile_row = place / 16;
                    const int i1 = first_row + tile_row < 40 ? first_row + tile_row : first_of_turns;
        __local const float* sums = memory + place / 16 * 68 + place % 16 * 4;
        float4 finished = *(__local const float4*)sums;
        finished += *(__local const float4*)(sums + 1088);

     {
        kept0[e] = finished;
    }
                }
                #pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const int place = first_place + e * 128;
                    const int tile_row = place / 16;
                    const int i1 = first_row + tile_row;
if (i1 < 40) {
     {
        vstore_half4_rte(kept0[e], 0, p2 + (i1 * 32 + i6 * 4));
    }
                    }
                }
                }
            }
else if (column_tile < 2) {
                const int i7 = (column_tile - 1) * 16 + tile_column / 4;
if (i7 < 8) {
                float4 kept0[2];
                #pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const int place = first_place + e * 128;
                    const int tile_row = place / 16;
                    const int i1 = first_row + tile_row < 40 ? first_row + tile_row : first_of_turns;
        __local const float* sums = memory + place / 16 * 68 + place % 16 * 4;
        float4 finished = *(__local const float4*)sums;
        finished += *(__local const float4*)(sums + 1088);

     {
        kept0[e] = finished;
    }
                }
                #pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const int place = first_place + e * 128;
                    const int tile_row = place / 16;
                    const int i1 = first_row + tile_row;
if (i1 < 40) {
     {
        vstore_half4_rte(kept0[e], 0, p3 + (i1 * 32 + i7 * 4));
    }
                    }
                }
                }
            }
else if (column_tile < 3) {
                const int i8 = (column_tile - 2) * 16 + tile_column / 4;
if (i8 < 8) {
                float4 kept0[2];
                #pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const int place = first_place + e * 128;
                    const int tile_row = place / 16;
                    const int i1 = first_row + tile_row < 40 ? first_row + tile_row : first_of_turns;
        __local const float* sums = memory + place / 16 * 68 + place % 16 * 4;
        float4 finished = *(__local const float4*)sums;
        finished += *(__local const float4*)(sums + 1088);

     {
        kept0[e] = finished;
    }
                }
                #pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const int place = first_place + e * 128;
                    const int tile_row = place / 16;
                    const int i1 = first_row + tile_row;
if (i1 < 40) {
     {
        vstore_half4_rte(kept0[e], 0, p4 + (i1 * 32 + i8 * 4));
    }
                    }
                }
                }
            }
        }
    }
}

// k1_contraction: global (512,), local (128,)
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
// Contractions for GPUs with local memory. A work-group owns 16 x 32 sums. Tiles of both factors, 64 deep, lie in local
// memory; the next tiles are loaded while these are multiplied.
//   1. All work-items compute what the rows of the left factor need, a team for each row: the statistics of a normalisation,
//      or the scores of an attention and their softmax, in registers, where they become the left factor.
//   2. 4 slices of sub-groups of 32 work-items share the depth of a tile (slice-K). A sub-group owns 16 x 32 sums.
//   3. The sums of several slices are added in local memory; those of one slice stay in registers. Every work-item then
//      runs the epilogue of some sums, four columns at a time.
// The matrix unit nvidia_f16 multiplies the tiles.
#ifndef SMR_UNIT_nvidia_f16
#define SMR_UNIT_nvidia_f16
typedef ushort __attribute__((may_alias)) nvidia_f16_element; // sums take the place of tiles in local memory
typedef float4 nvidia_f16_sums;
#define nvidia_f16_no_sums ((nvidia_f16_sums)(0))
#define nvidia_f16_mma(C, A, B)                                                                              \
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 { %0,%1,%2,%3}, { %4,%5,%6,%7}, { %8,%9}, { %0,%1,%2,%3};"  \
        : "+f"(C.s0), "+f"(C.s1), "+f"(C.s2), "+f"(C.s3) \
        : "r"(A.s0), "r"(A.s1), "r"(A.s2), "r"(A.s3), "r"(B.s0), "r"(B.s1))
typedef uint4 nvidia_f16_left;
typedef uint2 nvidia_f16_right;
static inline nvidia_f16_left nvidia_f16_load_left(__local const nvidia_f16_element* tile, int stride, int lane) {
    nvidia_f16_left a;
    const uint at = (uint)(size_t)(tile + lane % 16 * stride + lane / 16 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 { %0,%1,%2,%3}, [%4];"
                 : "=r"(a.s0), "=r"(a.s1), "=r"(a.s2), "=r"(a.s3) : "r"(at) : "memory");
    return a;
}
static inline void nvidia_f16_load_rights_turned(nvidia_f16_right* first, nvidia_f16_right* second, __local const nvidia_f16_element* tile, int stride, int lane) {
    uint4 b;
    const uint at = (uint)(size_t)(tile + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 { %0,%1,%2,%3}, [%4];"
                 : "=r"(b.s0), "=r"(b.s1), "=r"(b.s2), "=r"(b.s3) : "r"(at) : "memory");
    *first = b.s01;
    *second = b.s23;
}
static inline void nvidia_f16_load_rights(nvidia_f16_right* first, nvidia_f16_right* second, __local const nvidia_f16_element* tile, int stride, int lane) {
    uint4 b;
    const uint at = (uint)(size_t)(tile + lane % 16 * stride + lane / 16 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 { %0,%1,%2,%3}, [%4];"
                 : "=r"(b.s0), "=r"(b.s1), "=r"(b.s2), "=r"(b.s3) : "r"(at) : "memory");
    *first = b.s01;
    *second = b.s23;
}
#define nvidia_f16_multiply(PASS, C, A, B) nvidia_f16_mma(C, A, B)
static inline uint nvidia_f16_two(float low, float high) {
    uint both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
#define nvidia_f16_keep(P, X) *(P) = (ushort)nvidia_f16_two((X), 0.0f)
static inline void nvidia_f16_keep4(__local nvidia_f16_element* at, float4 x) {
    *(__local uint2*)at = (uint2)(nvidia_f16_two(x.s0, x.s1), nvidia_f16_two(x.s2, x.s3));
}
// Sums that a lane holds as the left factor that it holds.
static inline nvidia_f16_left nvidia_f16_chained(float x0, float x1, float x2, float x3, float x4, float x5, float x6, float x7) {
    return (nvidia_f16_left)(nvidia_f16_two(x0, x1), nvidia_f16_two(x2, x3), nvidia_f16_two(x4, x5), nvidia_f16_two(x6, x7));
}
static inline void nvidia_f16_store(__local float* tile, int stride, int lane, nvidia_f16_sums c) {
    __local float2* at = (__local float2*)(tile + (lane / 4 % 8 * 1) * stride + lane / 1 % 4 * 2);
    at[0] = c.s01;
    at[(8 * stride + 0) / 2] = c.s23;
}
// Copies 16 bytes from global to local memory, or writes zeros there where `counts` is 0.
static inline void nvidia_f16_copy(__local nvidia_f16_element* to, __global const nvidia_f16_element* from, int counts) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 : : "r"((uint)(size_t)to), "l"(from), "r"(counts ? 16 : 0) : "memory");
}
#ifndef SMR_PREFETCH
#define SMR_PREFETCH(P) asm volatile("prefetch.global.L2 [%0];" : : "l"(P))
#endif
#define nvidia_f16_commit() asm volatile("cp.async.commit_group;" : : : "memory")
#define nvidia_f16_wait(COUNT) asm volatile("cp.async.wait_group " #COUNT ";" : : : "memory")
#endif

__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void smr_kernel(
    __global const half* restrict p0 /* buffer[d0d1d2] of [2, 20, 32] */,
    __global const half* restrict p1 /* buffer[d0d1d2] of [2, 20, 32] */,
    __global const half* restrict p2 /* buffer[d0d1d2] of [2, 20, 32] */,
    __global float* restrict p3 /* buffer[d0d1d2] of [2, 20, 32] */) {
    __local float across[64] __attribute__((aligned(16)));
    __local float memory[2880] __attribute__((aligned(16)));
    const int group = ((int)get_group_id(0)) & 0x7fffffff;
    const int thread = (int)get_local_id(0) & 127;
    const int column_tile = group % 1;
    const int first_row = group / 1 % 2 * 16;
    const int i0 = group / 2;
    const int lane = thread % 32;
    const int warp = thread / 32 % 1;
    const int slice = thread / 32;
    const int warp_row = warp / 1 * 16;
    const int warp_column = warp % 1 * 32;


    __local nvidia_f16_element* const values = (__local nvidia_f16_element*)memory;
    {
        const int step = 0;
        __local nvidia_f16_element* const right_into = values;
     {
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot % 4;
                const int i2 = min((column_tile * 32) / 8 + at, 3);
                const int depth = step * 64 + slot / 4;
                const int i3 = min(depth, 19);
                nvidia_f16_copy(right_into + (slot / 4) * 40 + (slot % 4) * 8, (__global const nvidia_f16_element*)(p0 + (i0 * 640 + i2 * 8 + i3 * 32)), depth < 20);
            }
        }
    }
    }
    nvidia_f16_commit();
    const int own_row = lane / 4 % 8 * 1, own_column = lane / 1 % 4 * 2;
    float scores[8], weights[8];
    {
        __local float* const behind_values = memory + 1280;
        const int columns_of_slice = slice * 16;
        {
            __local float* const memory = behind_values;
            const int slice = 0, warp_column = columns_of_slice;


    nvidia_f16_sums c0 = nvidia_f16_no_sums;
    nvidia_f16_sums c1 = nvidia_f16_no_sums;
    __local nvidia_f16_element* const left_tiles = (__local nvidia_f16_element*)memory;
    __local nvidia_f16_element* const right_tiles = left_tiles + 640;
    if (0 + 0 < 1) {
        const int step = 0 + 0;
            __local nvidia_f16_element* const left_into = left_tiles + 0 * 640;
     {
        #pragma unroll
        for (int e = 0; e < 1; ++e) {
            const int slot = e * 128 + thread;
            if (slot < 64) {
                const int at = slot / 4;
                const int i4 = min(first_row + at, 19);
                const int depth = step * 4 + slot % 4;
                const int i5 = depth;
                nvidia_f16_copy(left_into + (slot / 4) * 40 + (slot % 4) * 8, (__global const nvidia_f16_element*)(p1 + (i0 * 640 + i4 * 32 + i5 * 8)), 1);
            }
        }
    }
            __local nvidia_f16_element* const right_into = right_tiles + 0 * 2560;
     {
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot / 4;
                const int i3 = min(0 + at, 19);
                const int depth = step * 4 + slot % 4;
                const int i2 = depth;
                nvidia_f16_copy(right_into + (slot / 4) * 40 + (slot % 4) * 8, (__global const nvidia_f16_element*)(p2 + (i0 * 640 + i2 * 8 + i3 * 32)), 1);
            }
        }
    }

    }
    nvidia_f16_commit();
    {
        const int step = 0;


    }
    for (int turn = 0; turn < 1; ++turn) {
        __local nvidia_f16_element* left = left_tiles + 0 * 640;
        __local nvidia_f16_element* right = right_tiles + 0 * 2560;


        nvidia_f16_wait(0);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (turn + 1 < 1) {
            const int step = turn + 1;
            __local nvidia_f16_element* const left_into = left_tiles + 0 * 640;
     {
        #pragma unroll
        for (int e = 0; e < 1; ++e) {
            const int slot = e * 128 + thread;
            if (slot < 64) {
                const int at = slot / 4;
                const int i4 = min(first_row + at, 19);
                const int depth = step * 4 + slot % 4;
                const int i5 = depth;
                nvidia_f16_copy(left_into + (slot / 4) * 40 + (slot % 4) * 8, (__global const nvidia_f16_element*)(p1 + (i0 * 640 + i4 * 32 + i5 * 8)), 1);
            }
        }
    }
            __local nvidia_f16_element* const right_into = right_tiles + 0 * 2560;
     {
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int slot = e * 128 + thread;
             {
                const int at = slot / 4;
                const int i3 = min(0 + at, 19);
                const int depth = step * 4 + slot % 4;
                const int i2 = depth;
                nvidia_f16_copy(right_into + (slot / 4) * 40 + (slot % 4) * 8, (__global const nvidia_f16_element*)(p2 + (i0 * 640 + i2 * 8 + i3 * 32)), 1);
            }
        }
    }

        }
        nvidia_f16_commit();
        if (turn + 1 < 1) {
            const int step = turn + 1;


        }
        const int depth = slice * 32;
        #pragma unroll
        for (int k = 0; k < 32; k += 16) {
            __local const nvidia_f16_element* a = left + warp_row * 40 + depth + k;
            __local const nvidia_f16_element* b = right + warp_column * 40 + depth + k;
            const nvidia_f16_left a0 = nvidia_f16_load_left(a + 0, 40, lane);
            nvidia_f16_right b0, b1;
            nvidia_f16_load_rights_turned(&b0, &b1, b + 0, 40, lane);
            nvidia_f16_multiply(0, c0, a0, b0);
            nvidia_f16_multiply(0, c1, a0, b1);

        }
    }

            scores[0] = c0.s0;
            scores[1] = c0.s1;
            scores[2] = c0.s2;
            scores[3] = c0.s3;
            scores[4] = c1.s0;
            scores[5] = c1.s1;
            scores[6] = c1.s2;
            scores[7] = c1.s3;
        }
    }
     {
        float t1[8];
        #pragma unroll
        for (int held = 0; held < 8; ++held) {
            const int slot = held / 4 / 2 * 2 + (int)(0x1010000UL >> 8 * (held % 4) & 255);
            const int at = warp_row + slot / 2 * 16 + (int)(0x800UL >> 8 * (slot % 2) & 255) + own_row;
            const int i1 = min(first_row + at, 19);
            const int column = slice * 16 + held / 4 % 2 * 8 + (int)(0x1000100UL >> 8 * (held % 4) & 255) + own_column;
            const int i6 = min(column, 19);
            const float t2 = (scores[held] * 0.1257302165031433f);
            t1[held] = t2;
        }
        float t3[2];
        #pragma unroll
        for (int slot = 0; slot < 2; ++slot) {
            const int at = warp_row + slot / 2 * 16 + (int)(0x800UL >> 8 * (slot % 2) & 255) + own_row;
            const int i1 = min(first_row + at, 19);
            t3[slot] = -INFINITY;
        }
        #pragma unroll
        for (int held = 0; held < 8; ++held) {
            const int slot = held / 4 / 2 * 2 + (int)(0x1010000UL >> 8 * (held % 4) & 255);
            const int at = warp_row + slot / 2 * 16 + (int)(0x800UL >> 8 * (slot % 2) & 255) + own_row;
            const int i1 = min(first_row + at, 19);
            const int column = slice * 16 + held / 4 % 2 * 8 + (int)(0x1000100UL >> 8 * (held % 4) & 255) + own_column;
            const int i6 = min(column, 19);
            if (column < 20) t3[slot] = smr_max1(t3[slot], t1[held]);
        }
        #pragma unroll
        for (int slot = 0; slot < 2; ++slot) {
            const int at = warp_row + slot / 2 * 16 + (int)(0x800UL >> 8 * (slot % 2) & 255) + own_row;
            const int i1 = min(first_row + at, 19);
            for (int distance = 2; distance > 0; distance /= 2) {
                t3[slot] = smr_max1(t3[slot], smr_neighbour(t3[slot], distance, 4));
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll
        for (int slot = 0; slot < 2; ++slot) {
            const int at = warp_row + slot / 2 * 16 + (int)(0x800UL >> 8 * (slot % 2) & 255) + own_row;
            const int i1 = min(first_row + at, 19);
            if (lane % 4 == 0) across[at * 4 + slice] = t3[slot];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll
        for (int slot = 0; slot < 2; ++slot) {
            const int at = warp_row + slot / 2 * 16 + (int)(0x800UL >> 8 * (slot % 2) & 255) + own_row;
            const int i1 = min(first_row + at, 19);
            t3[slot] = across[at * 4];
            #pragma unroll
            for (int member = 1; member < 4; ++member) {
                t3[slot] = smr_max1(t3[slot], across[at * 4 + member]);
            }
        }
        float t4[2];
        #pragma unroll
        for (int slot = 0; slot < 2; ++slot) {
            const int at = warp_row + slot / 2 * 16 + (int)(0x800UL >> 8 * (slot % 2) & 255) + own_row;
            const int i1 = min(first_row + at, 19);
            t4[slot] = t3[slot];
        }
        float t5[8];
        #pragma unroll
        for (int held = 0; held < 8; ++held) {
            const int slot = held / 4 / 2 * 2 + (int)(0x1010000UL >> 8 * (held % 4) & 255);
            const int at = warp_row + slot / 2 * 16 + (int)(0x800UL >> 8 * (slot % 2) & 255) + own_row;
            const int i1 = min(first_row + at, 19);
            const int column = slice * 16 + held / 4 % 2 * 8 + (int)(0x1000100UL >> 8 * (held % 4) & 255) + own_column;
            const int i6 = min(column, 19);
            const float t6 = (t1[held] - t4[slot]);
            const float t7 = smr_exp1(t6);
            t5[held] = t7;
        }
        float t8[2];
        #pragma unroll
        for (int slot = 0; slot < 2; ++slot) {
            const int at = warp_row + slot / 2 * 16 + (int)(0x800UL >> 8 * (slot % 2) & 255) + own_row;
            const int i1 = min(first_row + at, 19);
            t8[slot] = 0.0f;
        }
        #pragma unroll
        for (int held = 0; held < 8; ++held) {
            const int slot = held / 4 / 2 * 2 + (int)(0x1010000UL >> 8 * (held % 4) & 255);
            const int at = warp_row + slot / 2 * 16 + (int)(0x800UL >> 8 * (slot % 2) & 255) + own_row;
            const int i1 = min(first_row + at, 19);
            const int column = slice * 16 + held / 4 % 2 * 8 + (int)(0x1000100UL >> 8 * (held % 4) & 255) + own_column;
            const int i6 = min(column, 19);
            if (column < 20) t8[slot] = t8[slot] + t5[held];
        }
        #pragma unroll
        for (int slot = 0; slot < 2; ++slot) {
            const int at = warp_row + slot / 2 * 16 + (int)(0x800UL >> 8 * (slot % 2) & 255) + own_row;
            const int i1 = min(first_row + at, 19);
            for (int distance = 2; distance > 0; distance /= 2) {
                t8[slot] = t8[slot] + smr_neighbour(t8[slot], distance, 4);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll
        for (int slot = 0; slot < 2; ++slot) {
            const int at = warp_row + slot / 2 * 16 + (int)(0x800UL >> 8 * (slot % 2) & 255) + own_row;
            const int i1 = min(first_row + at, 19);
            if (lane % 4 == 0) across[at * 4 + slice] = t8[slot];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll
        for (int slot = 0; slot < 2; ++slot) {
            const int at = warp_row + slot / 2 * 16 + (int)(0x800UL >> 8 * (slot % 2) & 255) + own_row;
            const int i1 = min(first_row + at, 19);
            t8[slot] = across[at * 4];
            #pragma unroll
            for (int member = 1; member < 4; ++member) {
                t8[slot] = t8[slot] + across[at * 4 + member];
            }
        }
        float t9[2];
        #pragma unroll
        for (int slot = 0; slot < 2; ++slot) {
            const int at = warp_row + slot / 2 * 16 + (int)(0x800UL >> 8 * (slot % 2) & 255) + own_row;
            const int i1 = min(first_row + at, 19);
            t9[slot] = t8[slot];
        }
        #pragma unroll
        for (int held = 0; held < 8; ++held) {
            const int slot = held / 4 / 2 * 2 + (int)(0x1010000UL >> 8 * (held % 4) & 255);
            const int at = warp_row + slot / 2 * 16 + (int)(0x800UL >> 8 * (slot % 2) & 255) + own_row;
            const int i1 = min(first_row + at, 19);
            const int column = slice * 16 + held / 4 % 2 * 8 + (int)(0x1000100UL >> 8 * (held % 4) & 255) + own_column;
            const int i6 = min(column, 19);
            const float t10 = (t5[held] / t9[slot]);
            weights[held] = column < 20 ? t10 : 0.0f;
        }
    }
    nvidia_f16_sums c0 = nvidia_f16_no_sums;
    nvidia_f16_sums c1 = nvidia_f16_no_sums;
    nvidia_f16_sums c2 = nvidia_f16_no_sums;
    nvidia_f16_sums c3 = nvidia_f16_no_sums;
    {
        __local const nvidia_f16_element* b = values + (slice * 16 + 0) * 40;
        const nvidia_f16_left a0 = nvidia_f16_chained(weights[0], weights[1], weights[2], weights[3], weights[4], weights[5], weights[6], weights[7]);
        nvidia_f16_right b0, b1;
        nvidia_f16_load_rights(&b0, &b1, b + 0, 40, lane);
        nvidia_f16_right b2, b3;
        nvidia_f16_load_rights(&b2, &b3, b + 16, 40, lane);
            nvidia_f16_multiply(0, c0, a0, b0);
            nvidia_f16_multiply(0, c1, a0, b1);
            nvidia_f16_multiply(0, c2, a0, b2);
            nvidia_f16_multiply(0, c3, a0, b3);

    }
    barrier(CLK_LOCAL_MEM_FENCE);
    {
        __local float* sums = memory + slice * 576;
        nvidia_f16_store(sums + (warp_row + 0) * 36 + warp_column + 0, 36, lane, c0);
        nvidia_f16_store(sums + (warp_row + 0) * 36 + warp_column + 8, 36, lane, c1);
        nvidia_f16_store(sums + (warp_row + 0) * 36 + warp_column + 16, 36, lane, c2);
        nvidia_f16_store(sums + (warp_row + 0) * 36 + warp_column + 24, 36, lane, c3);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int place = thread; place < 128; place += 128) {
        const int tile_row = place / 8;
        const int tile_column = place % 8 * 4;

        const int i1 = first_row + tile_row;
        if (i1 < 20) {
        __local const float* sums = memory + place / 8 * 36 + place % 8 * 4;
        float4 finished = *(__local const float4*)sums;
        finished += *(__local const float4*)(sums + 576);
        finished += *(__local const float4*)(sums + 1152);
        finished += *(__local const float4*)(sums + 1728);

if (column_tile < 1) {
            const int i7 = (column_tile - 0) * 8 + tile_column / 4;
            if (i7 < 8) {
     {
         {
            *(__global float4*)(p3 + (i0 * 640 + i1 * 32 + i7 * 4)) = finished;
        }
    }
            }
        }
        }
    }
}
