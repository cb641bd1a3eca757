// bfloat16 of NVIDIA's devices, four at a time: 8 bytes at once where a place is aligned as the whole vector. They are
// converted in registers of 32 bits; PTX's own conversion (`cvt.rn.bf16x2.f32`) begins with capability 8.0.
#ifndef SMR_BFLOATS_PTX
#define SMR_BFLOATS_PTX
static inline float4 smr_floats_of_bfloats(uint2 bits) {
    return as_float4((uint4)(bits.s0 << 16, bits.s0 & 0xffff0000u, bits.s1 << 16, bits.s1 & 0xffff0000u));
}
static inline uint2 smr_bfloats_of_floats(float4 x) {
    return (uint2)(as_uint(smr_round_bfloat(x.s0)) >> 16 | as_uint(smr_round_bfloat(x.s1)),
                   as_uint(smr_round_bfloat(x.s2)) >> 16 | as_uint(smr_round_bfloat(x.s3)));
}
static inline float4 smr_load_bfloat4_where(int counts, __global const ushort* p) {
    uint2 bits = (uint2)(0);
    if (counts) bits = *(__global const uint2*)p;
    return smr_floats_of_bfloats(bits);
}
#undef smr_vload_bfloat4
#undef smr_vstore_bfloat4_rte
#define smr_vload_bfloat4(I, P) smr_bfloat_bits4(vload4(I, P))
#define smr_vstore_bfloat4_rte(X, I, P) vstore4(smr_bits_bfloat4(X), I, P)
#undef vload_bfloat4
#undef vstore_bfloat4_rte
#define vload_bfloat4(I, P) smr_floats_of_bfloats(((__global const uint2*)(P))[I])
#define vstore_bfloat4_rte(X, I, P) ((__global uint2*)(P))[I] = smr_bfloats_of_floats(X)
#endif
