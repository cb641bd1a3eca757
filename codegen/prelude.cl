// Declarations that all kernels use, once at the top of each program.
//
// Textures are read through an unnormalised nearest sampler that clamps: a read outside an image gives zeros.
// Lanes of a texel that lie past the end of a tensor's lane axis hold zeros; kernels write them so.

#ifndef SMR_PRELUDE
#define SMR_PRELUDE
// What models compute may be constant or compare a value with itself, which is no mistake in generated text.
#if defined(__clang__) && !defined(__NV_CL_C_VERSION)
#pragma clang diagnostic ignored "-Wconstant-logical-operand"
#pragma clang diagnostic ignored "-Wtautological-compare"
#endif
#ifdef __IMAGE_SUPPORT__
__constant sampler_t smr_sampler = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;

static inline float smr_lane(float4 texel, int lane) {
    return lane < 2 ? (lane == 0 ? texel.x : texel.y) : (lane == 2 ? texel.z : texel.w);
}
#endif

// A condition that holds for unusual data alone: simulations leave out what stands behind it.
static inline int smr_seldom(int condition) { return condition; }

// Vectors in memory, which is aligned for their elements only.
typedef float smr_float4 __attribute__((ext_vector_type(4), aligned(4)));
typedef float smr_float8 __attribute__((ext_vector_type(8), aligned(4)));
typedef float smr_float16 __attribute__((ext_vector_type(16), aligned(4)));
#define SMR_INTEGERS(W)                                                                                \
typedef char smr_char##W __attribute__((ext_vector_type(W), aligned(1)));                              \
typedef uchar smr_uchar##W __attribute__((ext_vector_type(W), aligned(1)));                            \
typedef short smr_short##W __attribute__((ext_vector_type(W), aligned(2)));                            \
typedef ushort smr_ushort##W __attribute__((ext_vector_type(W), aligned(2)));                          \
typedef int smr_int##W __attribute__((ext_vector_type(W), aligned(4)));
SMR_INTEGERS(4)
SMR_INTEGERS(8)
SMR_INTEGERS(16)

// PoCL's functions of whole vectors are calls, one for each element, where processors have one instruction; a call also
// spills all vector registers.
#if defined(SMR_CPU) && defined(__has_builtin) && (defined(__SSE4_1__) || defined(__aarch64__))
#if __has_builtin(__builtin_elementwise_roundeven)
#undef rint
#undef floor
#undef ceil
#undef trunc
#undef fabs
#define rint(X) __builtin_elementwise_roundeven(X)
#define floor(X) __builtin_elementwise_floor(X)
#define ceil(X) __builtin_elementwise_ceil(X)
#define trunc(X) __builtin_elementwise_trunc(X)
#define fabs(X) __builtin_elementwise_abs(X)
#endif
#endif
#if defined(SMR_CPU) && defined(__has_attribute)
#if __has_attribute(overloadable)
#define SMR_ORDER(T)                                                                                   \
static inline __attribute__((overloadable)) T smr_least(T a, T b) { return b < a ? b : a; }             \
static inline __attribute__((overloadable)) T smr_most(T a, T b) { return a < b ? b : a; }
SMR_ORDER(int)
SMR_ORDER(uint)
SMR_ORDER(long)
SMR_ORDER(ulong)
SMR_ORDER(int4)
SMR_ORDER(int8)
#undef min
#undef max
#define min smr_least
#define max smr_most
#endif
#endif

// The sums of four products of bytes each, added to `sums`: of `a`, whose bytes have no sign, and of `b`, whose bytes have
// one. No step saturates: products of two neighbours fit 17 bits.
#ifdef SMR_CPU
#if defined(__has_builtin) && defined(__AVX512BW__)
#if __has_builtin(__builtin_ia32_pmaddwd512)
#define SMR_PAIRS_512
#endif
#if __has_builtin(__builtin_ia32_vpdpbusd512) && defined(__AVX512VNNI__) && !defined(SMR_NO_BYTE_PRODUCTS)
#define SMR_BYTES_512
#endif
#endif
#if defined(__has_builtin) && defined(__AVX2__)
#if __has_builtin(__builtin_ia32_pmaddwd256)
#define SMR_PAIRS_256
#endif
#if __has_builtin(__builtin_ia32_vpdpbusd256) && !defined(SMR_NO_BYTE_PRODUCTS)
#if defined(__AVXVNNI__) || defined(__AVX512VNNI__) && defined(__AVX512VL__)
#define SMR_BYTES_256
#endif
#endif
#endif
#define SMR_DOT(W)                                                                                     \
static inline int##W smr_dot##W(int##W sums, int a, int##W b) {                                        \
    return sums + (b << 24 >> 24) * (a & 255) + (b << 16 >> 24) * (a >> 8 & 255)                        \
        + (b << 8 >> 24) * (a >> 16 & 255) + (b >> 24) * (a >> 24 & 255);                              \
}
SMR_DOT(4)
#if defined(SMR_BYTES_256)
static inline int8 smr_dot8(int8 sums, int a, int8 b) { return __builtin_ia32_vpdpbusd256(sums, (int8)a, b); }
#elif defined(SMR_PAIRS_256) && !defined(SMR_NO_PAIRS)
static inline int8 smr_dot8(int8 sums, int a, int8 b) {
    const short16 even = as_short16(b << 8) >> (short)8, odd = as_short16(b) >> (short)8;
    const int8 low = (int8)(a & 0x00ff00ff), high = (int8)(a >> 8 & 0x00ff00ff);
    return sums + __builtin_ia32_pmaddwd256(as_short16(low), even) + __builtin_ia32_pmaddwd256(as_short16(high), odd);
}
#else
SMR_DOT(8)
#endif
#if defined(SMR_BYTES_512)
static inline int16 smr_dot16(int16 sums, int a, int16 b) { return __builtin_ia32_vpdpbusd512(sums, (int16)a, b); }
#elif defined(SMR_PAIRS_512) && !defined(SMR_NO_PAIRS)
typedef short smr_short32 __attribute__((ext_vector_type(32)));
static inline int16 smr_dot16(int16 sums, int a, int16 b) {
    const smr_short32 even = __builtin_astype(b << 8, smr_short32) >> (short)8;
    const smr_short32 odd = __builtin_astype(b, smr_short32) >> (short)8;
    const int16 low = (int16)(a & 0x00ff00ff), high = (int16)(a >> 8 & 0x00ff00ff);
    return sums + __builtin_ia32_pmaddwd512(__builtin_astype(low, smr_short32), even)
        + __builtin_ia32_pmaddwd512(__builtin_astype(high, smr_short32), odd);
}
#else
SMR_DOT(16)
#endif
#endif

// An attribute of functions that compute in vectors of BITS: without it LLVM divides vectors of 512 bits into two of 256.
#if defined(__has_attribute)
#if __has_attribute(min_vector_width)
#define SMR_VECTORS(BITS) __attribute__((min_vector_width(BITS)))
#endif
#endif
#ifndef SMR_VECTORS
#define SMR_VECTORS(BITS)
#endif

#if defined(SMR_BYTE_TILES)
// Sums of products of bytes by the matrix unit of a processor (AMX): rows of `left`, `stride` bytes apart, whose bytes have
// no sign, times up to 64 columns of `right`, whose words hold four steps of k of one column. A row of `right` and of `sums`
// has `width` bytes: 64 for each register of sums. The unit's registers are set anew for each call; 16 words of k are
// multiplied at a time, then the rest.
#define SMR_TILE_SUMS(J, LEFT, RIGHT)                                                                  \
    if (width > 64 * J) {                                                                              \
        __builtin_ia32_tileloadd64(RIGHT, (const void*)(right + k * width + 64 * J), width);           \
        __builtin_ia32_tdpbusd(J, LEFT, RIGHT);                                                        \
    }
#define SMR_TILE_STEP(LEFT, RIGHT)                                                                     \
    __builtin_ia32_tileloadd64(LEFT, (const void*)(left + 4 * (size_t)k), stride);                     \
    SMR_TILE_SUMS(0, LEFT, RIGHT)                                                                      \
    SMR_TILE_SUMS(1, LEFT, RIGHT)                                                                      \
    SMR_TILE_SUMS(2, LEFT, RIGHT)                                                                      \
    SMR_TILE_SUMS(3, LEFT, RIGHT)
#define SMR_TILE_STORE(J) if (width > 64 * J) __builtin_ia32_tilestored64(J, (void*)(sums + 64 * J), width);
__attribute__((target("amx-int8,amx-tile")))
static inline void smr_byte_tiles(size_t left, long stride, size_t right, long width, int words, size_t sums, int rows) {
    const int rest = words % 16;
    // a palette, bytes of a row of each register in 16 bits, rows of each in 8: sums 0 to 3, factors 4 and 5, of the rest 6, 7
    const ulong shapes[8] = {
        1, 0, 0x0040004000400040UL, 0x00400040UL | (rest ? (ulong)(4 * rest) << 32 | 64UL << 48 : 0), 0, 0,
        (ulong)rows * 0x0101010101UL | 16UL << 40 | (rest ? (ulong)rows << 48 | (ulong)rest << 56 : 0), 0,
    };
    __builtin_ia32_tile_loadconfig((const void*)shapes);
    __builtin_ia32_tilezero(0);
    __builtin_ia32_tilezero(1);
    __builtin_ia32_tilezero(2);
    __builtin_ia32_tilezero(3);
    int k = 0;
    for (; k + 16 <= words; k += 16) {
        SMR_TILE_STEP(4, 5)
    }
    if (rest) {
        SMR_TILE_STEP(6, 7)
    }
    SMR_TILE_STORE(0)
    SMR_TILE_STORE(1)
    SMR_TILE_STORE(2)
    SMR_TILE_STORE(3)
    __builtin_ia32_tilerelease();
}
#endif

// Vectors of halves in memory, which is aligned for one half only. PoCL's vload_half4, vload_half8 and their vstores assume
// the alignment of the whole vector, and where the compiler moves the conversion out of a loop, the aligned instruction
// that remains stops the process.
#ifdef SMR_CPU
#if defined(__has_builtin) && defined(__F16C__)
#if __has_builtin(__builtin_ia32_vcvtph2ps256) && __has_builtin(__builtin_ia32_vcvtps2ph256)
#define SMR_HALVES_IN_PLACE
#endif
#endif
#ifdef SMR_HALVES_IN_PLACE
static inline float8 smr_half_bits8(ushort8 bits) { return __builtin_ia32_vcvtph2ps256(as_short8(bits)); }
static inline ushort8 smr_bits_half8(float8 x) { return as_ushort8(__builtin_ia32_vcvtps2ph256(x, 0)); }
static inline float4 smr_half_bits4(ushort4 bits) { return smr_half_bits8((ushort8)(bits, (ushort4)(0))).lo; }
static inline ushort4 smr_bits_half4(float4 x) { return smr_bits_half8((float8)(x, (float4)(0.0f))).lo; }
static inline float smr_half_bits1(ushort bits) { return smr_half_bits8((ushort8)(bits)).s0; }
static inline ushort smr_bits_half1(float x) { return smr_bits_half8((float8)(x)).s0; }
#define SMR_HALVES(W)
#else
#define SMR_HALVES(W)                                                                                  \
static inline float##W smr_half_bits##W(ushort##W bits) { return vload_half##W(0, (const half*)&bits); } \
static inline ushort##W smr_bits_half##W(float##W x) {                                                 \
    ushort##W bits;                                                                                    \
    vstore_half##W##_rte(x, 0, (half*)&bits);                                                          \
    return bits;                                                                                       \
}
#endif
SMR_HALVES(4)
SMR_HALVES(8)
#define smr_vload_half4(I, P) smr_half_bits4(((__global const smr_ushort4*)(P))[I])
#define smr_vload_half8(I, P) smr_half_bits8(((__global const smr_ushort8*)(P))[I])
#define smr_vstore_half4_rte(X, I, P) ((__global smr_ushort4*)(P))[I] = smr_bits_half4(X)
#define smr_vstore_half8_rte(X, I, P) ((__global smr_ushort8*)(P))[I] = smr_bits_half8(X)
#else
#define smr_vload_half4 vload_half4
#define smr_vload_half8 vload_half8
#define smr_vstore_half4_rte vstore_half4_rte
#define smr_vstore_half8_rte vstore_half8_rte
#endif

// Integer arithmetic that never stops the device: a division by zero gives some number, and what overflows wraps.
#define SMR_SIGNED(S, T, U)                                                                            \
static inline T smr_div_##S(T a, T b) { return b == 0 ? 0 : (b == -1 ? (T)(0 - (U)a) : a / b); }        \
static inline T smr_fmod_##S(T a, T b) { return b == 0 || b == -1 ? 0 : a % b; }                        \
static inline T smr_mod_##S(T a, T b) {                                                                \
    const T r = smr_fmod_##S(a, b);                                                                    \
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;                                                   \
}                                                                                                      \
static inline T smr_floordiv_##S(T a, T b) {                                                           \
    return smr_div_##S(a, b) - (smr_fmod_##S(a, b) != 0 && (a < 0) != (b < 0) ? 1 : 0);                 \
}                                                                                                      \
static inline T smr_pow_##S(T a, T b) {                                                                \
    if (b < 0) return a == 1 ? 1 : (a == -1 ? (b % 2 == 0 ? 1 : -1) : 0);                              \
    U r = 1, power = (U)a;                                                                             \
    for (; b > 0; b >>= 1, power *= power) if (b & 1) r *= power;                                      \
    return (T)r;                                                                                       \
}
#define SMR_UNSIGNED(S, T)                                                                             \
static inline T smr_div_##S(T a, T b) { return b == 0 ? 0 : a / b; }                                    \
static inline T smr_fmod_##S(T a, T b) { return b == 0 ? 0 : a % b; }                                   \
static inline T smr_mod_##S(T a, T b) { return smr_fmod_##S(a, b); }                                    \
static inline T smr_floordiv_##S(T a, T b) { return smr_div_##S(a, b); }                                \
static inline T smr_pow_##S(T a, T b) {                                                                \
    T r = 1;                                                                                           \
    for (; b > 0; b >>= 1, a *= a) if (b & 1) r *= a;                                                  \
    return r;                                                                                          \
}
SMR_SIGNED(i, int, uint)
SMR_SIGNED(l, long, ulong)
SMR_UNSIGNED(u, uint)
SMR_UNSIGNED(ul, ulong)

// Floats to integers, truncated toward zero. C and OpenCL leave open what NaN and values out of range become, and devices
// differ; here they become what x86 gives: the lowest signed integer, for unsigned ones the bits of the conversion of x or x - 2^63.
#define SMR_TO_INTEGERS(S, T)                                                                           \
static inline int smr_to_int_##S(T x) { return x >= (T)-2147483648.0 && x < (T)2147483648.0 ? (int)x : INT_MIN; } \
static inline long smr_to_long_##S(T x) { return x >= (T)-9223372036854775808.0 && x < (T)9223372036854775808.0 ? (long)x : LONG_MIN; } \
static inline ulong smr_to_ulong_##S(T x) {                                                             \
    const T high = x - (T)9223372036854775808.0;                                                        \
    return x >= (T)9223372036854775808.0 ? (ulong)smr_to_long_##S(high) ^ 0x8000000000000000UL : (ulong)smr_to_long_##S(x); \
}
SMR_TO_INTEGERS(f, float)
static inline int4 smr_to_int_f4(float4 x) { return x >= -2147483648.0f && x < 2147483648.0f ? convert_int4(x) : INT_MIN; }
#if defined(SMR_CPU) && defined(__has_builtin) && defined(__AVX__)
#if __has_builtin(__builtin_ia32_cvttps2dq256)
#define SMR_TO_INT_F8(X) __builtin_ia32_cvttps2dq256(X)
#endif
#endif
#ifndef SMR_TO_INT_F8
#define SMR_TO_INT_F8(X) ((X) >= -2147483648.0f && (X) < 2147483648.0f ? convert_int8(X) : INT_MIN)
#endif
static inline int8 smr_to_int_f8(float8 x) { return SMR_TO_INT_F8(x); }

// x * y + z, rounded once.
static inline float smr_fma1(float x, float y, float z) { return fma(x, y, z); }
#if defined(SMR_CPU) && defined(__has_builtin) && defined(__FMA__)
#if __has_builtin(__builtin_ia32_vfmaddps) && __has_builtin(__builtin_ia32_vfmaddps256)
static inline float4 smr_fma4(float4 x, float4 y, float4 z) { return __builtin_ia32_vfmaddps(x, y, z); }
static inline float8 smr_fma8(float8 x, float8 y, float8 z) { return __builtin_ia32_vfmaddps256(x, y, z); }
#define SMR_HAS_FMA
#endif
#endif
#ifndef SMR_HAS_FMA
static inline float4 smr_fma4(float4 x, float4 y, float4 z) { return fma(x, y, z); }
static inline float8 smr_fma8(float8 x, float8 y, float8 z) { return fma(x, y, z); }
#endif
#ifdef cl_khr_fp64
SMR_TO_INTEGERS(d, double)
#endif

// Indices that a tensor holds: negative ones count from the end of the axis, and what still lies outside is clamped.
static inline int smr_inside(int i, int extent) { return min(max(i, 0), max(extent - 1, 0)); }
static inline int smr_wrap(int i, int extent) { return smr_inside(i < 0 ? i + extent : i, extent); }

// The remainder has the sign of the divisor, also where the divisor is infinite or the remainder zero; fmod by an infinite
// divisor is not exact on every device.
#define SMR_MOD(NAME, T)                                                                               \
static inline T NAME(T a, T b) {                                                                       \
    const T r = isinf(b) && isfinite(a) ? a : fmod(a, b);                                              \
    return r == 0 ? copysign((T)0, b) : ((r < 0) != (b < 0) ? r + b : r);                              \
}
SMR_MOD(smr_mod, float)
#ifdef cl_khr_fp64
SMR_MOD(smr_mod_d, double)
// Comparisons keep NaN: max(NaN, x) is NaN as in ONNX, and so is the sign of NaN.
static inline double smr_max_d(double a, double b) { return b != b ? b : (a < b ? b : a); }
static inline double smr_min_d(double a, double b) { return b != b ? b : (b < a ? b : a); }
static inline double smr_sign_d(double x) { return x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : (x != x ? x : 0.0)); }
#endif

static inline float smr_round_bfloat(float x) {
    const uint bits = as_uint(x);
    return as_float((x != x ? bits | 0x400000u : bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
}
// Floats of 16 bits with the exponents of single precision, in memory: to the nearest, ties to even; NaN stays NaN.
static inline ushort smr_bits_bfloat(float x) { return (ushort)(as_uint(smr_round_bfloat(x)) >> 16); }
#define SMR_BFLOATS(W, TO_UINT, TO_USHORT)                                                              \
static inline float##W smr_bfloat_bits##W(ushort##W bits) { return as_float##W(TO_UINT(bits) << 16); }   \
static inline ushort##W smr_bits_bfloat##W(float##W x) {                                                 \
    const uint##W bits = as_uint##W(x);                                                                  \
    const uint##W nearest = bits + 0x7fffu + ((bits >> 16) & 1u);                                        \
    return TO_USHORT((x != x ? bits | 0x400000u : nearest) >> 16);                                       \
}
SMR_BFLOATS(4, convert_uint4, convert_ushort4)
SMR_BFLOATS(8, convert_uint8, convert_ushort8)
#define vload_bfloat(I, P) as_float((uint)(P)[I] << 16)
#define vload_bfloat4(I, P) smr_bfloat_bits4(vload4(I, P))
#define vload_bfloat8(I, P) smr_bfloat_bits8(vload8(I, P))
#define vstore_bfloat_rte(X, I, P) (P)[I] = smr_bits_bfloat(X)
#define vstore_bfloat4_rte(X, I, P) vstore4(smr_bits_bfloat4(X), I, P)
#define vstore_bfloat8_rte(X, I, P) vstore8(smr_bits_bfloat8(X), I, P)
#define smr_vload_bfloat4 vload_bfloat4
#define smr_vload_bfloat8 vload_bfloat8
#define smr_vstore_bfloat4_rte vstore_bfloat4_rte
#define smr_vstore_bfloat8_rte vstore_bfloat8_rte

// Rounds to a float of few bits: `mantissa` bits behind the point; numbers from 2 ** least on are normal. What rounds to
// more than `largest` becomes `beyond`.
static inline float smr_round_small(float x, int mantissa, int least, float largest, float beyond) {
    if (x != x || x == 0.0f) return x;
    const float magnitude = fabs(x);
    if (isinf(magnitude)) return copysign(beyond, x);
    const float step = ldexp(1.0f, max(ilogb(magnitude), least) - mantissa);
    const float rounded = rint(magnitude / step) * step;
    return copysign(rounded > largest ? beyond : rounded, x);
}

#ifdef SMR_HALVES_IN_PLACE
static inline float smr_round_half(float x) { return smr_half_bits1(smr_bits_half1(x)); }
#undef vload_half
#undef vload_half4
#undef vload_half8
#undef vstore_half_rte
#undef vstore_half4_rte
#undef vstore_half8_rte
#define vload_half(I, P) smr_half_bits1(((__global const ushort*)(P))[I])
#define vload_half4 smr_vload_half4
#define vload_half8 smr_vload_half8
#define vstore_half_rte(X, I, P) ((__global ushort*)(P))[I] = smr_bits_half1(X)
#define vstore_half4_rte smr_vstore_half4_rte
#define vstore_half8_rte smr_vstore_half8_rte
#else
static inline float smr_round_half(float x) {
    ushort memory;
    vstore_half_rte(x, 0, (half*)&memory);
    return vload_half(0, (const half*)&memory);
}
#endif

// One definition for each width. Comparisons keep NaN: max(NaN, x) is NaN as in ONNX.
// smr_erf: rational approximation on [-4, 4], absolute error below 1e-6 of the true value in single precision; from 4 on
// exactly 1, whatever the device's division gives, so that Gelu of -inf is NaN as its formula says.
// smr_tanh: exactly 1 where single precision has no number between; PoCL's built-in stays one step below at infinity, and
// x * (1 + tanh(x)) is then not zero for large negative x but grows with x.
// smr_exp on CPUs: 2^k * polynomial (degree 6), error below 1.5 ulp, zero below 1.7e-38; built-ins are not inlined there.
#define SMR_FUNCTIONS(W, F, I)                                                                        \
static inline F smr_max##W(F a, F b) { return b != b ? b : (a < b ? b : a); }                          \
static inline F smr_min##W(F a, F b) { return b != b ? b : (b < a ? b : a); }                          \
static inline F smr_sign##W(F x) { return x > 0.0f ? (F)(1.0f) : (x < 0.0f ? (F)(-1.0f) : (x != x ? x : (F)(0.0f))); } \
static inline F smr_recip##W(F x) { return 1.0f / x; }                                                 \
SMR_EXP(W, F, I)                                                                                       \
static inline F smr_sigmoid##W(F x) { return 1.0f / (1.0f + smr_exp##W(-x)); }                         \
static inline F smr_tanh##W(F x) { return fabs(x) > 9.02f ? copysign((F)(1.0f), x) : tanh(x); }         \
static inline F smr_erf##W(F given) {                                                                  \
    const F x = given > 4.0f ? (F)(4.0f) : (given < -4.0f ? (F)(-4.0f) : given);                       \
    const F s = x * x;                                                                                 \
    F p = s * -2.72614225801306e-10f + 2.77068142495902e-08f;                                          \
    p = p * s + -2.10102402082508e-06f;                                                                \
    p = p * s + -5.69250639462346e-05f;                                                                \
    p = p * s + -7.34990630326855e-04f;                                                                \
    p = p * s + -2.95459980854025e-03f;                                                                \
    p = p * s + -1.60960333262415e-02f;                                                                \
    F q = s * -1.45660718464996e-05f + -2.13374055278905e-04f;                                         \
    q = q * s + -1.68282697438203e-03f;                                                                \
    q = q * s + -7.37332916720468e-03f;                                                                \
    q = q * s + -1.42647390514189e-02f;                                                                \
    const F near = x * p / q;                                                                          \
    return given >= 4.0f ? (F)(1.0f) : (given <= -4.0f ? (F)(-1.0f) : near);                           \
}

#ifdef SMR_SHUFFLE_PTX
// The x of the work-item whose number differs in the bits of `distance`. All `size` neighbours have to call this, and
// work-groups have one dimension.
static inline float smr_neighbour(float x, int distance, int size) {
    const uint all = size == 32 ? 0xffffffffu : ((1u << size) - 1u) << ((int)get_local_id(0) & 31 & ~(size - 1));
    float other;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, %3;" : "=f"(other) : "f"(x), "r"(distance), "r"(all));
    return other;
}
#endif

#ifdef SMR_CPU
// Prefetches the cache line at P, which may lie past the end of its buffer; one that is read later only to the second
// cache, where it drives nothing out of the first.
#if defined(__has_builtin) && !defined(SMR_NO_PREFETCH)
#if __has_builtin(__builtin_prefetch)
#define SMR_PREFETCH(P) __builtin_prefetch((const void*)(size_t)(P))
#define SMR_PREFETCH_LATER(P) __builtin_prefetch((const void*)(size_t)(P), 0, 2)
#endif
#endif
#ifndef SMR_PREFETCH
#define SMR_PREFETCH(P)
#define SMR_PREFETCH_LATER(P)
#endif

#define SMR_EXP(W, F, I)                                                                               \
static inline F smr_exp##W(F x) {                                                                      \
    const F below = x > 88.8f ? (F)(88.8f) : x;                                                        \
    const F limited = below < -87.0f ? (F)(-87.0f) : below;                                            \
    /* floats of this size are integers: the sum rounds what is added to one */                        \
    const F shifted = limited * 1.44269504f + 12582912.0f;                                             \
    const F k = shifted - 12582912.0f;                                                                 \
    const F r = (limited - k * 0.693359375f) + k * 2.12194440e-4f;                                     \
    F p = r * 1.9875691500e-4f + 1.3981999507e-3f;                                                     \
    p = p * r + 8.3334519073e-3f;                                                                      \
    p = p * r + 4.1665795894e-2f;                                                                      \
    p = p * r + 1.6666665459e-1f;                                                                      \
    p = p * r + 5.0000001201e-1f;                                                                      \
    p = p * (r * r) + r + 1.0f;                                                                        \
    /* 2^k as twice 2^(k - 1), which is a float for every k */                                         \
    const F scaled = p * SMR_AS_FLOAT##W((SMR_AS_INT##W(shifted) + 126) << 23) * 2.0f;                 \
    return x < -86.98f ? (F)(0.0f) : scaled;                                                           \
}
#else
#define SMR_EXP(W, F, I) static inline F smr_exp##W(F x) { return exp(x); }
#endif

// Sine, cosine and tangent. PoCL's vector functions compute all lanes as the largest angle needs, so that the result of a
// lane depends on its neighbours, and they are wrong for denormals; its scalar functions are right. On CPUs each lane is
// computed by itself. An angle below 2^20 is reduced in double precision by two parts of pi/2 (the product of the first
// part, of 33 bits, and a number of 20 bits is exact), and a polynomial follows (error below 2.5 ulp, of the tangent below
// 4). Larger angles go to the scalar built-in function.
#if defined(SMR_CPU) && defined(cl_khr_fp64)
#define SMR_FAR 1048576.0f
#define SMR_REDUCED(W, F, I, D)                                                                        \
static inline F smr_reduced##W(F x, I* quarter) {                                                      \
    const D wide = SMR_TO_DOUBLE##W(x);                                                                \
    /* doubles of this size are integers */                                                            \
    const D shifted = wide * 0.63661977236758134308 + 6755399441055744.0;                              \
    const D n = shifted - 6755399441055744.0;                                                          \
    *quarter = SMR_LOW_INT##W(shifted);                                                                \
    return SMR_TO_FLOAT##W((wide - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11);      \
}
#define SMR_NEAR(W, F, I)                                                                              \
static inline F smr_near_sin##W(F r) {                                                                 \
    const F z = r * r;                                                                                 \
    const F p = (z * -1.9515295891e-4f + 8.3321608736e-3f) * z - 1.6666654611e-1f;                     \
    return p * z * r + r;                                                                              \
}                                                                                                      \
static inline F smr_near_cos##W(F r) {                                                                 \
    const F z = r * r;                                                                                 \
    const F p = (z * 2.443315711809948e-5f - 1.388731625493765e-3f) * z + 4.166664568298827e-2f;       \
    return p * z * z - 0.5f * z + 1.0f;                                                                \
}                                                                                                      \
static inline F smr_turned##W(F sine, F cosine, I quarter) {                                           \
    const F value = (quarter & 1) != 0 ? cosine : sine;                                                \
    return (quarter & 2) != 0 ? -value : value;                                                        \
}
#define SMR_TURNED(W, F, I, NAME, VALUE)                                                               \
static inline F smr_##NAME##W(F x) {                                                                   \
    I quarter;                                                                                         \
    const F r = smr_reduced##W(x, &quarter);                                                           \
    const F s = smr_near_sin##W(r), c = smr_near_cos##W(r);                                            \
    F value = VALUE;                                                                                   \
    for (int lane = 0; lane < W; ++lane)                                                               \
        if (!(fabs(((const float*)&x)[lane]) < SMR_FAR)) ((float*)&value)[lane] = NAME(((const float*)&x)[lane]); \
    return value;                                                                                      \
}
#define SMR_ANGLES(W, F, I)                                                                            \
SMR_NEAR(W, F, I)                                                                                      \
SMR_TURNED(W, F, I, sin, (x == 0.0f ? x : smr_turned##W(s, c, quarter)))                               \
SMR_TURNED(W, F, I, cos, smr_turned##W(s, c, quarter + 1))                                             \
SMR_TURNED(W, F, I, tan, (x == 0.0f ? x : ((quarter & 1) != 0 ? -c / s : s / c)))
#define SMR_TO_DOUBLE1(x) (double)(x)
#define SMR_TO_DOUBLE4(x) convert_double4(x)
#define SMR_TO_FLOAT1(x) (float)(x)
#define SMR_TO_FLOAT4(x) convert_float4(x)
#define SMR_LOW_INT1(x) (int)(as_long(x) & 3)
#define SMR_LOW_INT4(x) convert_int4(as_long4(x) & 3)
SMR_REDUCED(1, float, int, double)
SMR_REDUCED(4, float4, int4, double4)
/* Never a double8: where LLVM 14 compiles for registers of 256 bits (Zen 4, which it calls znver3), it ends the process
   with `Cannot select ... VFPROUND` if it knows the angles. */
static inline float8 smr_reduced8(float8 x, int8* quarter) {
    int4 low, high;
    const float8 r = (float8)(smr_reduced4(x.lo, &low), smr_reduced4(x.hi, &high));
    *quarter = (int8)(low, high);
    return r;
}
SMR_ANGLES(1, float, int)
SMR_ANGLES(4, float4, int4)
SMR_ANGLES(8, float8, int8)
#else
#define SMR_LANES(W, F, NAME)                                                                          \
static inline F smr_##NAME##W(F x) {                                                                   \
    F value;                                                                                           \
    for (int lane = 0; lane < W; ++lane) ((float*)&value)[lane] = NAME(((const float*)&x)[lane]);      \
    return value;                                                                                      \
}
#define SMR_ANGLES(W, F) SMR_LANES(W, F, sin) SMR_LANES(W, F, cos) SMR_LANES(W, F, tan)
SMR_ANGLES(1, float)
SMR_ANGLES(4, float4)
SMR_ANGLES(8, float8)
#endif

#define SMR_AS_INT1(x) as_int(x)
#define SMR_AS_INT4(x) as_int4(x)
#define SMR_AS_INT8(x) as_int8(x)
#define SMR_AS_FLOAT1(x) as_float(x)
#define SMR_AS_FLOAT4(x) as_float4(x)
#define SMR_AS_FLOAT8(x) as_float8(x)

SMR_FUNCTIONS(1, float, int)
SMR_FUNCTIONS(4, float4, int4)
SMR_FUNCTIONS(8, float8, int8)
#endif // SMR_PRELUDE
