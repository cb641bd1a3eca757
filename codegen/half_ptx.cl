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
