{# Matrix units that OpenCL C reaches by a built-in function of sub-groups. The matrix block says where the elements of
   fragments lie; they are loaded one by one and packed into registers of 32 bits.
   u: the matrix block; f: its fragments by name. With `exchange` the function is emulated, on any device and slowly:
   lanes put their fragments into local memory, and each lane multiplies what its own sums need. With three passes floats
   are two parts each, of which the emulation, as a unit does, takes the first 11 bits. #}
{% from "matrix_fragments.cl" import row, column, offset %}
{% from "matrix_parts.cl" import parts %}
{% from "matrix_values.cl" import copies, values %}
{% set n = u.name %}
{% set each = 4 // u.element_bytes %}
{% set lefts = f.left.element_count // each %}
{% set rights = f.right.element_count // each %}
{% set counts = f.sum.element_count %}
{% set sum = "int" if u.sums == "int32" else "float" %}
{% set type = {"float32": "uint", "float16": "ushort", "bfloat16": "ushort", "int8": "uchar"}[u.factors] %}
{% set letters = "0123456789abcdef" %}
{% set parted = u.passes == 3 %}
#ifndef SMR_UNIT_{{ n }}
#define SMR_UNIT_{{ n }}
typedef {{ {"float32": "float", "int8": "char"}.get(u.factors, "ushort") }} __attribute__((may_alias)) {{ n }}_element; // sums take the place of tiles in local memory
{% for side, registers in (("left", lefts), ("right", rights)) %}
{% if parted %}
typedef struct { uint{{ registers }} high, low; } {{ n }}_{{ side }};
{% else %}
typedef uint{{ registers }} {{ n }}_{{ side }};
{% endif %}
{% endfor %}
typedef {{ sum }}{{ counts }} {{ n }}_sums;
#define {{ n }}_no_sums (({{ n }}_sums)(0))
#define {{ n }}_bits(X) ((uint)as_{{ type }}(X))
{% if parted %}
static inline uint {{ n }}_high(float x) { return isfinite(x) ? as_uint(x) + 0x1000 & 0xffffe000u : as_uint(x); }
{{ parts(n) }}
{%- endif %}
{% for any in (("", "_any") if parted else ("",)) %}
static inline {{ n }}_left {{ n }}_load_left{{ any }}(__local const {{ n }}_element* tile, int stride, int lane) {
    __local const {{ n }}_element* at = tile + ({{ row(f.left) }}) * stride + {{ column(f.left) }};
    {{ n }}_left a;
{% if parted %}
    uint high, low;
{% endif %}
{% for register in range(lefts) %}
{% if parted %}
    {{ n }}_parts{{ any }}(at[{{ offset(f.left, register, "stride") }}], &high, &low);
    a.high.s{{ letters[register] }} = high;
    a.low.s{{ letters[register] }} = low;
{% else %}
    a.s{{ letters[register] }} = {% for e in range(each) %}{{ n }}_bits(at[{{ offset(f.left, register * each + e, "stride") }}]) << {{ 8 * u.element_bytes * e }}{{ " | " if not loop.last }}{% endfor %};
{% endif %}
{% endfor %}
    return a;
}
{% for turned in (false, true) %}
static inline {{ n }}_right {{ n }}_load_right{{ "_turned" if turned }}{{ any }}(__local const {{ n }}_element* tile, int stride, int lane) {
    __local const {{ n }}_element* at = tile + ({{ column(f.right) if turned else row(f.right) }}) * stride + {{ row(f.right) if turned else column(f.right) }};
    {{ n }}_right b;
{% if parted %}
    uint high, low;
{% endif %}
{% for register in range(rights) %}
{% if parted %}
    {{ n }}_parts{{ any }}(at[{{ offset(f.right, register, "stride", turned) }}], &high, &low);
    b.high.s{{ letters[register] }} = high;
    b.low.s{{ letters[register] }} = low;
{% else %}
    b.s{{ letters[register] }} = {% for e in range(each) %}{{ n }}_bits(at[{{ offset(f.right, register * each + e, "stride", turned) }}]) << {{ 8 * u.element_bytes * e }}{{ " | " if not loop.last }}{% endfor %};
{% endif %}
{% endfor %}
    return b;
}
static inline void {{ n }}_load_rights{{ "_turned" if turned }}{{ any }}({{ n }}_right* first, {{ n }}_right* second, __local const {{ n }}_element* tile, int stride, int lane) {
    *first = {{ n }}_load_right{{ "_turned" if turned }}{{ any }}(tile, stride, lane);
    *second = {{ n }}_load_right{{ "_turned" if turned }}{{ any }}(tile + {{ u.columns }}{{ " * stride" if turned }}, stride, lane);
}
{% endfor %}
{% endfor %}
static inline void {{ n }}_store(__local {{ sum }}* tile, int stride, int lane, {{ n }}_sums c) {
    __local {{ sum }}* at = tile + ({{ row(f.sum) }}) * stride + {{ column(f.sum) }};
{% for e in range(counts) %}
    at[{{ offset(f.sum, e, "stride") }}] = c.s{{ letters[e] }};
{% endfor %}
}
{{ values(u, not parted) }}
{% if u.chained %}
// Sums that a lane holds as the left factor that it holds.
static inline {{ n }}_left {{ n }}_chained({% for e in range(f.left.element_count) %}float x{{ e }}{{ ", " if not loop.last }}{% endfor %}) {
    {{ n }}_left a;
{% for register in range(lefts) %}
    a.s{{ letters[register] }} = {% for e in range(each) %}{{ n }}_bits({{ n }}_rounded(x{{ register * each + e }})) << {{ 8 * u.element_bytes * e }}{{ " | " if not loop.last }}{% endfor %};
{% endfor %}
    return a;
}
{% endif %}
{% if u.exchange %}
#define as_{{ n }}_element(X) {{ {"float32": "as_float((X) & 0xffffe000u)" if parted else "as_float(X)", "int8": "(char)(X)"}.get(u.factors, "(ushort)(X)") }}
static inline {{ n }}_sums {{ n }}_emulated(uint{{ lefts }} a, uint{{ rights }} b, {{ n }}_sums c, __local {{ n }}_element* left, int lane) {
    __local {{ n }}_element* right = left + {{ u.rows * u.depth }};
{% for e in range(f.left.element_count) %}
    left[({{ row(f.left) }}) * {{ u.depth }} + {{ column(f.left) }} + {{ offset(f.left, e, u.depth) }}] = as_{{ n }}_element(a.s{{ letters[e // each] }} >> {{ 8 * u.element_bytes * (e % each) }});
{% endfor %}
{% for e in range(f.right.element_count) %}
    right[({{ row(f.right) }}) * {{ u.columns }} + {{ column(f.right) }} + {{ offset(f.right, e, u.columns) }}] = as_{{ n }}_element(b.s{{ letters[e // each] }} >> {{ 8 * u.element_bytes * (e % each) }});
{% endfor %}
    barrier(CLK_LOCAL_MEM_FENCE);
    __local const {{ n }}_element* x = left + ({{ row(f.sum) }}) * {{ u.depth }};
    __local const {{ n }}_element* y = right + {{ column(f.sum) }};
    for (int k = 0; k < {{ u.depth }}; ++k) {
{% for e in range(counts) %}
        c.s{{ letters[e] }} += ({{ sum }}){{ n }}_value(x[{{ f.sum.place(0, e)[0] }} * {{ u.depth }} + k]) * ({{ sum }}){{ n }}_value(y[k * {{ u.columns }} + {{ f.sum.place(0, e)[1] }}]);
{% endfor %}
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return c;
}
#define {{ n }}_{{ "mma(" if parted else "multiply(PASS, " }}C, A, B) \
    C = {{ n }}_emulated(A, B, C, (__local {{ n }}_element*)smr_exchange + thread / {{ u.lanes }} * {{ u.exchange // u.element_bytes }}, lane)
{% else %}
#define {{ n }}_multiply(PASS, C, A, B) C = {{ u.multiply }}(as_int{{ lefts }}(A), as_int{{ rights }}(B), C)
{% endif %}
{% if u.asynchronous %}
{{ copies(u) }}
{% endif %}
#endif
