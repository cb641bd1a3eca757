/* SHA-256 by instructions: about ten times as fast as in C, and each start of a plan takes megabytes of texts. */
#include "sha256_blocks.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <cpuid.h>
#include <immintrin.h>

/* Intel's manual, CPUID leaf 7: EBX bit 29 is SHA; leaf 1: ECX bit 9 is SSSE3, bit 19 SSE4.1. */
static bool has_instructions(void) {
    unsigned a, b, c, d, leaf1;
    if (!__get_cpuid(1, &a, &b, &leaf1, &d) || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return false;
    return (b >> 29 & 1) && (leaf1 >> 9 & 1) && (leaf1 >> 19 & 1);
}

/* The next four words of the schedule from the sixteen before them, which lie in four registers. */
__attribute__((target("sha,ssse3,sse4.1"))) static inline __m128i next_words(__m128i a, __m128i b, __m128i c,
                                                                            __m128i d) {
    __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(a, b), _mm_alignr_epi8(d, c, 4));
    return _mm_sha256msg2_epu32(sum, d);
}

/* The instructions keep the state as the words ABEF and CDGH, and do two rounds at once. */
__attribute__((target("sha,ssse3,sse4.1"))) static void take(uint32_t state[8], const uint8_t *blocks, size_t count) {
    const __m128i order = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)state), 0xB1);
    __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)(state + 4)), 0x1B);
    __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xF0), w[4];
    for (; count; --count, blocks += SHA256_BLOCK) {
        __m128i first = abef, second = cdgh;
        for (unsigned i = 0; i < 4; ++i)
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(blocks + 16 * i)), order);
        for (unsigned i = 0; i < 16; ++i) {
            __m128i k = _mm_loadu_si128((const __m128i *)(const void *)(SHA256_K + 4 * i));
            __m128i words = _mm_add_epi32(w[i % 4], k);
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, words);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(words, 0x0E));
            if (i < 12)
                w[i % 4] = next_words(w[i % 4], w[(i + 1) % 4], w[(i + 2) % 4], w[(i + 3) % 4]);
        }
        abef = _mm_add_epi32(abef, first);
        cdgh = _mm_add_epi32(cdgh, second);
    }
    low = _mm_shuffle_epi32(abef, 0x1B);
    high = _mm_shuffle_epi32(cdgh, 0xB1);
    _mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(low, high, 0xF0));
    _mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(high, low, 8));
}

#elif defined(__aarch64__) && defined(__linux__) && defined(__GNUC__)

#include <arm_neon.h>
#include <sys/auxv.h>

enum { CAPABILITY_SHA2 = 1 << 6 }; /* Linux' HWCAP_SHA2 */

static bool has_instructions(void) {
    return (getauxval(AT_HWCAP) & CAPABILITY_SHA2) != 0;
}

__attribute__((target("+crypto"))) static void take(uint32_t state[8], const uint8_t *blocks, size_t count) {
    uint32x4_t abcd = vld1q_u32(state), efgh = vld1q_u32(state + 4), w[4];
    for (; count; --count, blocks += SHA256_BLOCK) {
        uint32x4_t first = abcd, second = efgh;
        for (unsigned i = 0; i < 4; ++i)
            w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(blocks + 16 * i)));
        for (unsigned i = 0; i < 16; ++i) {
            uint32x4_t words = vaddq_u32(w[i % 4], vld1q_u32(SHA256_K + 4 * i)), before = abcd;
            abcd = vsha256hq_u32(abcd, efgh, words);
            efgh = vsha256h2q_u32(efgh, before, words);
            if (i < 12)
                w[i % 4] = vsha256su1q_u32(vsha256su0q_u32(w[i % 4], w[(i + 1) % 4]), w[(i + 2) % 4], w[(i + 3) % 4]);
        }
        abcd = vaddq_u32(abcd, first);
        efgh = vaddq_u32(efgh, second);
    }
    vst1q_u32(state, abcd);
    vst1q_u32(state + 4, efgh);
}

#else

static bool has_instructions(void) {
    return false;
}

static void take(uint32_t state[8], const uint8_t *blocks, size_t count) {
    (void)state, (void)blocks, (void)count;
}

#endif

bool sha256_take_by_instructions(uint32_t state[8], const uint8_t *blocks, size_t count) {
    static _Thread_local int known; /* 0: not asked yet, 1: has them, -1: has none */
    if (!known)
        known = has_instructions() ? 1 : -1;
    if (known > 0)
        take(state, blocks, count);
    return known > 0;
}
