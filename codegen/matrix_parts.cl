{# Floats as factors of a matrix unit whose factors have 11 bits: two parts, of whose products three are summed.
   n: the unit's name. The text around it declares NAME_high(x), which rounds a float to 11 bits, and NAME_mma. #}
{% macro parts(n) %}
// A part that is rounded, and the rest. The parts of an infinity are 1 and the infinity: no product of parts is then an
// infinity times the 0 that is the rest of another float. What would be rounded to an infinity is cut off instead.
static inline void {{ n }}_parts(float x, uint* high, uint* low) {
    uint part = {{ n }}_high(x);
    if (isinf(as_float(part))) part = as_uint(x) & (isinf(x) ? 0xbf800000u : 0xffffe000u);
    *high = part;
    *low = as_uint(x - as_float(part));
}
#define {{ n }}_pass_0(C, A, B) {{ n }}_mma(C, A.low, B.high)
#define {{ n }}_pass_1(C, A, B) {{ n }}_mma(C, A.high, B.low)
#define {{ n }}_pass_2(C, A, B) {{ n }}_mma(C, A.high, B.high)
#define {{ n }}_multiply(PASS, C, A, B) {{ n }}_pass_##PASS(C, A, B)
{% endmacro %}
