// What every kernel relies on. Inserted once at the top of each program.
//
// Textures are read through an unnormalised nearest sampler that clamps: a read outside an image gives zeros.
// Lanes of a texel that lie past the end of a tensor's lane axis hold zeros; kernels write them so.

#ifndef SMR_PRELUDE
#define SMR_PRELUDE
#ifdef __IMAGE_SUPPORT__
__constant sampler_t smr_sampler = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;

static inline float smr_lane(float4 texel, int lane) {
    return lane < 2 ? (lane == 0 ? texel.x : texel.y) : (lane == 2 ? texel.z : texel.w);
}
#endif

// vectors in memory need no more alignment than their elements
typedef float smr_float4 __attribute__((ext_vector_type(4), aligned(4)));
typedef float smr_float8 __attribute__((ext_vector_type(8), aligned(4)));

// Integers: what has no value (a division by zero, the quotient that overflows) has some value, but never stops the device.
#define SMR_SIGNED(S, T)                                                                               \
static inline T smr_div_##S(T a, T b) { return b == 0 ? 0 : (b == -1 ? -a : a / b); }                   \
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
    T r = 1;                                                                                           \
    for (; b > 0; b >>= 1, a *= a) if (b & 1) r *= a;                                                  \
    return r;                                                                                          \
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
SMR_SIGNED(i, int)
SMR_SIGNED(l, long)
SMR_UNSIGNED(u, uint)
SMR_UNSIGNED(ul, ulong)

// Indices that come from a tensor: negative ones count from the end; none leaves the axis, whatever the tensor holds.
static inline int smr_inside(int i, int extent) { return clamp(i, 0, max(extent - 1, 0)); }
static inline int smr_wrap(int i, int extent) { return smr_inside(i < 0 ? i + extent : i, extent); }

// The sign of the divisor, also for infinite ones and for a rest of zero; fmod of an infinite divisor is not exact everywhere.
#define SMR_MOD(NAME, T)                                                                               \
static inline T NAME(T a, T b) {                                                                       \
    const T r = isinf(b) && isfinite(a) ? a : fmod(a, b);                                              \
    return r == 0 ? copysign((T)0, b) : ((r < 0) != (b < 0) ? r + b : r);                              \
}
SMR_MOD(smr_mod, float)
#ifdef cl_khr_fp64
SMR_MOD(smr_mod_d, double)
#endif

static inline float smr_round_bfloat(float x) {
    const uint bits = as_uint(x);
    return x != x ? x : as_float((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
}

// To a float of few bits: `mantissa` of them behind the point, normal from 2 ** least on.
static inline float smr_round_small(float x, int mantissa, int least, float largest, float beyond) {
    if (x != x || x == 0.0f) return x;
    const float magnitude = fabs(x);
    if (isinf(magnitude)) return copysign(beyond, x);
    const float step = ldexp(1.0f, max(ilogb(magnitude), least) - mantissa);
    const float rounded = rint(magnitude / step) * step;
    return copysign(rounded > largest ? beyond : rounded, x);
}

static inline float smr_round_half(float x) {
    ushort memory;
    vstore_half_rte(x, 0, (half*)&memory);
    return vload_half(0, (const half*)&memory);
}

// One definition for each width. Comparisons keep NaN: max(NaN, x) is NaN as in ONNX.
// smr_erf: rational approximation on [-4, 4], absolute error below 1e-6 of the true value in single precision.
// smr_exp on CPUs: 2^k * polynomial (degree 6), relative error below 2e-7, zero below 3e-38; built-ins are not inlined there.
#define SMR_FUNCTIONS(W, F, I)                                                                        \
static inline F smr_max##W(F a, F b) { return b != b ? b : (a < b ? b : a); }                          \
static inline F smr_min##W(F a, F b) { return b != b ? b : (b < a ? b : a); }                          \
static inline F smr_recip##W(F x) { return 1.0f / x; }                                                 \
SMR_EXP(W, F, I)                                                                                       \
static inline F smr_sigmoid##W(F x) { return 1.0f / (1.0f + smr_exp##W(-x)); }                         \
static inline F smr_tanh##W(F x) { return tanh(x); }                                                   \
static inline F smr_erf##W(F x) {                                                                      \
    x = x > 4.0f ? (F)(4.0f) : x;                                                                      \
    x = x < -4.0f ? (F)(-4.0f) : x;                                                                    \
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
    return x * p / q;                                                                                  \
}

#ifdef SMR_CPU
// Ask for the cache line at P, which may lie past the end of its buffer.
#if defined(__has_builtin)
#if __has_builtin(__builtin_prefetch)
#define SMR_PREFETCH(P) __builtin_prefetch((const void*)(size_t)(P))
#endif
#endif
#ifndef SMR_PREFETCH
#define SMR_PREFETCH(P)
#endif

#define SMR_EXP(W, F, I)                                                                               \
static inline F smr_exp##W(F x) {                                                                      \
    const F below = x > 88.8f ? (F)(88.8f) : x;                                                        \
    const F limited = below < -87.0f ? (F)(-87.0f) : below;                                            \
    /* a float of this size has its lowest bit at one: what is added is rounded to an integer */       \
    const F shifted = limited * 1.44269504f + 12582912.0f;                                             \
    const F k = shifted - 12582912.0f;                                                                 \
    const F r = (limited - k * 0.693359375f) + k * 2.12194440e-4f;                                     \
    F p = r * 1.9875691500e-4f + 1.3981999507e-3f;                                                     \
    p = p * r + 8.3334519073e-3f;                                                                      \
    p = p * r + 4.1665795894e-2f;                                                                      \
    p = p * r + 1.6666665459e-1f;                                                                      \
    p = p * r + 5.0000001201e-1f;                                                                      \
    p = p * (r * r) + r + 1.0f;                                                                        \
    /* 2^(k - 1), whose exponent is one of a float for every k, and twice that */                      \
    const F scaled = p * SMR_AS_FLOAT##W((SMR_AS_INT##W(shifted) + 126) << 23) * 2.0f;                 \
    return x < -86.6f ? (F)(0.0f) : scaled;                                                            \
}
#else
#define SMR_EXP(W, F, I) static inline F smr_exp##W(F x) { return exp(x); }
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
#endif
