{# How the matrix units of NVIDIA's GPUs bring elements to local memory, and sums out of registers.
   u: the matrix block; f: its fragments by name. #}
{% from "matrix_fragments.cl" import row, column, offset %}
{% macro kept(u) %}
{% set n = u.name %}
{% set instruction = "cvt.rn.f16x2.f32" if u.factors == "float16" else "cvt.rn.bf16x2.f32" %}
static inline uint {{ n }}_two(float low, float high) {
    uint both;
    asm("{{ instruction }} %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
#define {{ n }}_keep(P, X) *(P) = (ushort){{ n }}_two((X), 0.0f)
static inline void {{ n }}_keep4(__local {{ n }}_element* at, float4 x) {
    *(__local uint2*)at = (uint2)({{ n }}_two(x.s0, x.s1), {{ n }}_two(x.s2, x.s3));
}
{%- endmacro %}
{% macro stored(u, f) %}
{% set n = u.name %}
{% set integers = u.sums == "int32" %}
static inline void {{ n }}_store(__local {{ "int" if integers else "float" }}* tile, int stride, int lane, {{ n }}_sums c) {
    __local {{ "int2" if integers else "float2" }}* at = (__local {{ "int2" if integers else "float2" }}*)(tile + ({{ row(f.sum) }}) * stride + {{ column(f.sum) }});
    at[0] = c.s01;
    at[({{ offset(f.sum, 2, "stride") }}) / 2] = c.s23;
}
{%- endmacro %}
{% macro copied(u) %}
{% set n = u.name %}
// Copies 16 bytes from global to local memory, or writes zeros there where `counts` is 0.
static inline void {{ n }}_copy(__local {{ n }}_element* to, __global const {{ n }}_element* from, int counts) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 : : "r"((uint)(size_t)to), "l"(from), "r"(counts ? 16 : 0) : "memory");
}
#ifndef SMR_PREFETCH
#define SMR_PREFETCH(P) asm volatile("prefetch.global.L2 [%0];" : : "l"(P))
#endif
#define {{ n }}_commit() asm volatile("cp.async.commit_group;" : : : "memory")
#define {{ n }}_wait(COUNT) asm volatile("cp.async.wait_group " #COUNT ";" : : : "memory")
{%- endmacro %}
