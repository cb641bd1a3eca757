{# Elements of a matrix unit's tiles in plain OpenCL C: as numbers, rounded from floats, and copied at once.
   u: the matrix block; keeps: whether what stores elements is wanted, too. #}
{% macro values(u, keeps=true) %}
{% set n = u.name %}
{% if u.factors == "float16" %}
static inline float {{ n }}_value({{ n }}_element x) { return vload_half(0, (const half*)&x); }
static inline {{ n }}_element {{ n }}_rounded(float x) {
    {{ n }}_element bits;
    vstore_half_rte(x, 0, (half*)&bits);
    return bits;
}
{% elif u.factors == "bfloat16" %}
static inline float {{ n }}_value({{ n }}_element x) { return as_float((uint)x << 16); }
static inline {{ n }}_element {{ n }}_rounded(float x) { return smr_bits_bfloat(x); }
{% else %}
#define {{ n }}_value(X) (X)
#define {{ n }}_rounded(X) (X)
{% endif %}
{% if keeps %}
#define {{ n }}_keep(P, X) *(P) = {{ n }}_rounded(X)
static inline void {{ n }}_keep4(__local {{ n }}_element* at, float4 x) {
{% for e in range(4) %}
    {{ n }}_keep(at + {{ e }}, x.s{{ e }});
{% endfor %}
}
{% endif %}
{% endmacro %}
{% macro copies(u) %}
{% set n = u.name %}
// A copy that is complete on return, for devices without asynchronous copies.
static inline void {{ n }}_copy(__local {{ n }}_element* to, __global const {{ n }}_element* from, int counts) {
    if (counts) vstore{{ u.chunk }}(vload{{ u.chunk }}(0, from), 0, to);
    else vstore{{ u.chunk }}(({{ {"float32": "float", "int8": "char"}.get(u.factors, "ushort") }}{{ u.chunk }})(0), 0, to);
}
#ifndef SMR_PREFETCH
#define SMR_PREFETCH(P)
#endif
#define {{ n }}_commit()
#define {{ n }}_wait(COUNT)
{% endmacro %}
