{# Floats as factors of a matrix unit whose factors have 11 bits: two parts, of whose products three are summed.
   n: the unit's name. The text around it declares NAME_high(x), which rounds a float to 11 bits, and NAME_mma. #}
{% macro parts(n) %}
// A part that is rounded, and the rest. The parts of an infinity are 1 and the infinity: no product of parts is then an
// infinity times the 0 that is the rest of another float. What would be rounded to an infinity is cut off instead.
static inline void {{ n }}_parts_any(float x, uint* high, uint* low) {
    uint part = {{ n }}_high(x);
    if (isinf(as_float(part))) part = as_uint(x) & (isinf(x) ? 0xbf800000u : 0xffffe000u);
    *high = part;
    *low = as_uint(x - as_float(part));
}
// The same parts of floats that are not rounded to an infinity, by fewer instructions. A part of NaN is NaN.
static inline void {{ n }}_parts(float x, uint* high, uint* low) {
    *high = as_uint(x) + 0x1000u & 0xffffe000u;
    *low = as_uint(x - as_float(*high));
}
// Elements of tiles; the text around it declares `largest`, the largest magnitude that a work-item has seen.
#define {{ n }}_keep(P, X) { \
        const float kept = X; \
        *(P) = kept; \
        largest = fmax(largest, fabs(kept)); \
    }
#define {{ n }}_keep4(P, X) { \
        const float4 kept = X; \
        *(__local float4*)(P) = kept; \
        largest = fmax(fmax(fmax(largest, fabs(kept.s0)), fmax(fabs(kept.s1), fabs(kept.s2))), fabs(kept.s3)); \
    }
#define {{ n }}_pass_0(C, A, B) {{ n }}_mma(C, A.low, B.high)
#define {{ n }}_pass_1(C, A, B) {{ n }}_mma(C, A.high, B.low)
#define {{ n }}_pass_2(C, A, B) {{ n }}_mma(C, A.high, B.high)
#define {{ n }}_multiply(PASS, C, A, B) {{ n }}_pass_##PASS(C, A, B)
{% endmacro %}
