{# The matrix units of NVIDIA's GPUs in PTX: a sub-group is a warp, fragments are registers of 32 bits.
   u: the matrix block; f: its fragments by name. Tiles in local memory hold `{{ u.name }}_element`; floats are split into
   two parts of 11 bits, and three of the four products of parts are summed, which loses less than 2^-20 of a product. #}
{% from "matrix_fragments.cl" import row, column, offset %}
{% from "matrix_ptx_memory.cl" import kept, stored, copied %}
{% from "matrix_parts.cl" import parts %}
{% set n = u.name %}
{% set integers = u.sums == "int32" %}
{% set halves = u.factors in ("float16", "bfloat16") %}
{% set chunk = 16 // u.element_bytes %}
#ifndef SMR_UNIT_{{ n }}
#define SMR_UNIT_{{ n }}
typedef {{ {"float32": "float", "float16": "ushort", "bfloat16": "ushort", "int8": "char"}[u.factors] }} __attribute__((may_alias)) {{ n }}_element; // sums take the place of tiles in local memory
typedef {{ "int4" if integers else "float4" }} {{ n }}_sums;
#define {{ n }}_no_sums (({{ n }}_sums)(0))
#define {{ n }}_mma(C, A, B)                                                                              \
    asm("{{ u.multiply }} { %0,%1,%2,%3}, { %4,%5,%6,%7}, { %8,%9}, { %0,%1,%2,%3};"  \
        : "+{{ "r" if integers else "f" }}"(C.s0), "+{{ "r" if integers else "f" }}"(C.s1), "+{{ "r" if integers else "f" }}"(C.s2), "+{{ "r" if integers else "f" }}"(C.s3) \
        : "r"(A.s0), "r"(A.s1), "r"(A.s2), "r"(A.s3), "r"(B.s0), "r"(B.s1))
{% if u.factors == "float32" %}
typedef struct { uint4 high, low; } {{ n }}_left;
typedef struct { uint2 high, low; } {{ n }}_right;
static inline uint {{ n }}_high(float x) {
    uint high;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(high) : "f"(x));
    return high;
}
{{ parts(n) }}
{%- for any in ("", "_any") %}
static inline {{ n }}_left {{ n }}_load_left{{ any }}(__local const float* tile, int stride, int lane) {
    __local const float* at = tile + ({{ row(f.left) }}) * stride + {{ column(f.left) }};
    {{ n }}_left a;
    uint high, low;
{% for e in range(4) %}
    {{ n }}_parts{{ any }}(at[{{ offset(f.left, e, "stride") }}], &high, &low);
    a.high.s{{ e }} = high;
    a.low.s{{ e }} = low;
{% endfor %}
    return a;
}
static inline {{ n }}_right {{ n }}_split{{ any }}(float x0, float x1) {
    {{ n }}_right b;
    uint high, low;
    {{ n }}_parts{{ any }}(x0, &high, &low);
    b.high.s0 = high;
    b.low.s0 = low;
    {{ n }}_parts{{ any }}(x1, &high, &low);
    b.high.s1 = high;
    b.low.s1 = low;
    return b;
}
static inline void {{ n }}_load_rights{{ any }}({{ n }}_right* first, {{ n }}_right* second, __local const float* tile, int stride, int lane) {
    __local const float* at = tile + ({{ row(f.right) }}) * stride + {{ column(f.right) }};
    *first = {{ n }}_split{{ any }}(at[0], at[{{ offset(f.right, 1, "stride") }}]);
    *second = {{ n }}_split{{ any }}(at[{{ u.columns }}], at[{{ offset(f.right, 1, "stride") }} + {{ u.columns }}]);
}
static inline void {{ n }}_load_rights_turned{{ any }}({{ n }}_right* first, {{ n }}_right* second, __local const float* tile, int stride, int lane) {
    __local const float* at = tile + ({{ column(f.right) }}) * stride + {{ row(f.right) }};
    *first = {{ n }}_split{{ any }}(at[0], at[{{ offset(f.right, 1, "stride", true) }}]);
    *second = {{ n }}_split{{ any }}(at[{{ u.columns }} * stride], at[{{ u.columns }} * stride + {{ offset(f.right, 1, "stride", true) }}]);
}
{% endfor %}
{% else %}
typedef uint4 {{ n }}_left;
typedef uint2 {{ n }}_right;
static inline {{ n }}_left {{ n }}_load_left(__local const {{ n }}_element* tile, int stride, int lane) {
    {{ n }}_left a;
    const uint at = (uint)(size_t)(tile + lane % 16 * stride + lane / 16 * {{ chunk }});
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 { %0,%1,%2,%3}, [%4];"
                 : "=r"(a.s0), "=r"(a.s1), "=r"(a.s2), "=r"(a.s3) : "r"(at) : "memory");
    return a;
}
static inline void {{ n }}_load_rights_turned({{ n }}_right* first, {{ n }}_right* second, __local const {{ n }}_element* tile, int stride, int lane) {
    uint4 b;
    const uint at = (uint)(size_t)(tile + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * {{ chunk }});
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 { %0,%1,%2,%3}, [%4];"
                 : "=r"(b.s0), "=r"(b.s1), "=r"(b.s2), "=r"(b.s3) : "r"(at) : "memory");
    *first = b.s01;
    *second = b.s23;
}
static inline void {{ n }}_load_rights({{ n }}_right* first, {{ n }}_right* second, __local const {{ n }}_element* tile, int stride, int lane) {
{% if halves %}
    uint4 b;
    const uint at = (uint)(size_t)(tile + lane % 16 * stride + lane / 16 * {{ chunk }});
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 { %0,%1,%2,%3}, [%4];"
                 : "=r"(b.s0), "=r"(b.s1), "=r"(b.s2), "=r"(b.s3) : "r"(at) : "memory");
    *first = b.s01;
    *second = b.s23;
{% else %}
    __local const {{ n }}_element* at = tile + ({{ row(f.right) }}) * stride + {{ column(f.right) }};
{% for which in ("first", "second") %}
{% for register in range(2) %}
    {{ which }}->s{{ register }} = as_uint((char4)({% for e in range(4) %}at[{{ offset(f.right, 4 * register + e, "stride") }} + {{ 0 if which == "first" else u.columns }}]{{ ", " if not loop.last }}{% endfor %}));
{% endfor %}
{% endfor %}
{% endif %}
}
#define {{ n }}_multiply(PASS, C, A, B) {{ n }}_mma(C, A, B)
{% if halves %}
{{ kept(u) }}
{% if u.chained %}
// Sums that a lane holds as the left factor that it holds.
static inline {{ n }}_left {{ n }}_chained({% for e in range(8) %}float x{{ e }}{{ ", " if not loop.last }}{% endfor %}) {
    return ({{ n }}_left)({% for e in range(0, 8, 2) %}{{ n }}_two(x{{ e }}, x{{ e + 1 }}){{ ", " if not loop.last }}{% endfor %});
}
{% endif %}
{% endif %}
{% endif %}
{{ stored(u, f) }}
{% if u.asynchronous %}
{{ copied(u) }}
{% endif %}
#endif
