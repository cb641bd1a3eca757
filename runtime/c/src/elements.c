#include "elements.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Of a float of at most 16 bits. */
typedef struct minifloat {
    int exponent_bits, mantissa_bits, bias;
    bool sign;
    enum { IEEE, NAN_IS_ALL_ONES, NAN_IS_MINUS_ZERO, NO_NAN } special;
} minifloat;

static const minifloat *minifloat_of(int element) {
    static const minifloat HALF = {5, 10, 15, true, IEEE}, BRAIN = {8, 7, 127, true, IEEE};
    static const minifloat E4M3FN = {4, 3, 7, true, NAN_IS_ALL_ONES}, E4M3FNUZ = {4, 3, 8, true, NAN_IS_MINUS_ZERO};
    static const minifloat E5M2 = {5, 2, 15, true, IEEE}, E5M2FNUZ = {5, 2, 16, true, NAN_IS_MINUS_ZERO};
    static const minifloat E8M0FNU = {8, 0, 127, false, NAN_IS_ALL_ONES}, E2M1FN = {2, 1, 1, true, NO_NAN};
    switch (element) {
    case SMARTMEM_FLOAT16: return &HALF;
    case SMARTMEM_BFLOAT16: return &BRAIN;
    case SMARTMEM_FLOAT8_E4M3FN: return &E4M3FN;
    case SMARTMEM_FLOAT8_E4M3FNUZ: return &E4M3FNUZ;
    case SMARTMEM_FLOAT8_E5M2: return &E5M2;
    case SMARTMEM_FLOAT8_E5M2FNUZ: return &E5M2FNUZ;
    case SMARTMEM_FLOAT8_E8M0FNU: return &E8M0FNU;
    case SMARTMEM_FLOAT4_E2M1FN: return &E2M1FN;
    default: return NULL;
    }
}

size_t element_bytes(int element) {
    switch (element) {
    case SMARTMEM_FLOAT64:
    case SMARTMEM_INT64:
    case SMARTMEM_UINT64: return 8;
    case SMARTMEM_FLOAT32:
    case SMARTMEM_INT32:
    case SMARTMEM_UINT32: return 4;
    case SMARTMEM_FLOAT16:
    case SMARTMEM_BFLOAT16:
    case SMARTMEM_INT16:
    case SMARTMEM_UINT16: return 2;
    default: return element >= SMARTMEM_FLOAT16 && element <= SMARTMEM_FLOAT4_E2M1FN;
    }
}

/* Bits of an integer of less than a byte, else 0. */
static int narrow_bits(int element) {
    switch (element) {
    case SMARTMEM_INT4:
    case SMARTMEM_UINT4: return 4;
    case SMARTMEM_INT2:
    case SMARTMEM_UINT2: return 2;
    default: return 0;
    }
}

static bool is_narrow_pair(int narrow, int wide) {
    bool is_signed = narrow == SMARTMEM_INT4 || narrow == SMARTMEM_INT2;
    return narrow_bits(narrow) && wide == (is_signed ? SMARTMEM_INT8 : SMARTMEM_UINT8);
}

bool elements_same(int from, int to) {
    return from == to && from != SMARTMEM_BOOL;
}

bool elements_convert(int from, int to) {
    if (from == to)
        return element_bytes(from) != 0;
    if (is_narrow_pair(from, to) || is_narrow_pair(to, from))
        return true;
    return (from == SMARTMEM_FLOAT32 && minifloat_of(to) != NULL) ||
           (to == SMARTMEM_FLOAT32 && minifloat_of(from) != NULL);
}

static bool is_nan_code(const minifloat *kind, unsigned code, unsigned exponent, unsigned mantissa) {
    unsigned all_exponents = (1u << kind->exponent_bits) - 1, all_mantissas = (1u << kind->mantissa_bits) - 1;
    switch (kind->special) {
    case IEEE: return exponent == all_exponents && mantissa;
    case NAN_IS_ALL_ONES: return exponent == all_exponents && mantissa == all_mantissas;
    case NAN_IS_MINUS_ZERO: return code == 1u << (kind->exponent_bits + kind->mantissa_bits);
    default: return false;
    }
}

static float decoded(const minifloat *kind, unsigned code) {
    unsigned mantissa = code & ((1u << kind->mantissa_bits) - 1);
    unsigned exponent = code >> kind->mantissa_bits & ((1u << kind->exponent_bits) - 1);
    bool minus = kind->sign && code >> (kind->exponent_bits + kind->mantissa_bits) & 1;
    float value;
    if (is_nan_code(kind, code, exponent, mantissa))
        value = NAN;
    else if (kind->special == IEEE && exponent == (1u << kind->exponent_bits) - 1)
        value = INFINITY;
    else if (exponent == 0 && kind->sign)
        value = ldexpf((float)mantissa, 1 - kind->bias - kind->mantissa_bits);
    else
        value = ldexpf((float)(mantissa + (1u << kind->mantissa_bits)), (int)exponent - kind->bias - kind->mantissa_bits);
    return minus ? -value : value;
}

/* The code of NaN, by the sign that the NaN has. */
static unsigned nan_code(const minifloat *kind, bool minus) {
    unsigned bits = (unsigned)(kind->exponent_bits + kind->mantissa_bits), sign = minus ? 1u << bits : 0;
    switch (kind->special) {
    case IEEE: return sign | ((1u << kind->exponent_bits) - 1) << kind->mantissa_bits | 1u << (kind->mantissa_bits - 1);
    case NAN_IS_ALL_ONES: return (kind->sign ? sign : 0) | ((1u << bits) - 1);
    case NAN_IS_MINUS_ZERO: return 1u << bits;
    default: return sign;
    }
}

/* The greatest code of a positive number: infinity where the type has it. */
static unsigned greatest_code(const minifloat *kind) {
    unsigned all = (1u << (kind->exponent_bits + kind->mantissa_bits)) - 1;
    switch (kind->special) {
    case IEEE: return all >> kind->mantissa_bits << kind->mantissa_bits;
    case NAN_IS_ALL_ONES: return all - 1;
    default: return all;
    }
}

/* The code of the nearest value, of two the one with an even mantissa. The codes of a sign are in the order of the values,
 * so that a mantissa that is rounded up to the next power of two gives the code with the next exponent. */
static unsigned encoded(const minifloat *kind, float value) {
    bool minus = signbit(value) != 0;
    if (isnan(value))
        return nan_code(kind, minus);
    unsigned code = greatest_code(kind);
    int least = kind->sign ? 1 - kind->bias : -kind->bias, exponent;
    if (isfinite(value)) {
        frexpf(value, &exponent);
        exponent = value == 0 || exponent - 1 < least ? least : exponent - 1;
        float scaled = ldexpf(fabsf(value), kind->mantissa_bits - exponent);
        unsigned mantissa = (unsigned)scaled, first = kind->sign ? 0 : 1;
        float rest = scaled - (float)mantissa;
        unsigned near = ((unsigned)(exponent - least) << kind->mantissa_bits) + (mantissa > first ? mantissa - first : 0);
        near += mantissa >= first && (rest > 0.5f || (rest == 0.5f && near & 1));
        code = near < code ? near : code;
    }
    if (minus && code == 0 && kind->special == NAN_IS_MINUS_ZERO)
        return 0;
    return code | (minus && kind->sign ? 1u << (kind->exponent_bits + kind->mantissa_bits) : 0);
}

static void narrow_copy(uint8_t *to, int to_element, const uint8_t *from, int from_element, size_t count) {
    int narrow = narrow_bits(from_element) ? from_element : to_element, bits = narrow_bits(narrow);
    bool is_signed = narrow == SMARTMEM_INT4 || narrow == SMARTMEM_INT2, widens = narrow == from_element;
    unsigned mask = (1u << bits) - 1, sign = 1u << (bits - 1);
    for (size_t i = 0; i < count; ++i) {
        unsigned value = from[i] & mask;
        to[i] = (uint8_t)(widens && is_signed ? (value ^ sign) - sign : value);
    }
}

/* Memory of the application may begin anywhere: its floats are copied byte by byte. */
static void widen(void *to, const minifloat *kind, const void *from, size_t bytes, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        const uint8_t *at = (const uint8_t *)from + i * bytes;
        float value = decoded(kind, bytes == 2 ? at[0] | (unsigned)at[1] << 8 : at[0]);
        memcpy((uint8_t *)to + i * sizeof value, &value, sizeof value);
    }
}

static void shorten(void *to, const minifloat *kind, const void *from, size_t bytes, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        float value;
        memcpy(&value, (const uint8_t *)from + i * sizeof value, sizeof value);
        unsigned code = encoded(kind, value);
        uint8_t *at = (uint8_t *)to + i * bytes;
        at[0] = (uint8_t)code;
        if (bytes == 2)
            at[1] = (uint8_t)(code >> 8);
    }
}

void elements_copy(void *to, int to_element, const void *from, int from_element, size_t count) {
    if (elements_same(from_element, to_element)) {
        if (count)
            memcpy(to, from, count * element_bytes(from_element));
    } else if (from_element == SMARTMEM_BOOL) {
        for (size_t i = 0; i < count; ++i)
            ((uint8_t *)to)[i] = ((const uint8_t *)from)[i] != 0;
    } else if (narrow_bits(from_element) || narrow_bits(to_element)) {
        narrow_copy(to, to_element, from, from_element, count);
    } else if (to_element == SMARTMEM_FLOAT32) {
        widen(to, minifloat_of(from_element), from, element_bytes(from_element), count);
    } else {
        shorten(to, minifloat_of(to_element), from, element_bytes(to_element), count);
    }
}
