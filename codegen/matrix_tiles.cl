{# A matrix unit that reads both factors from local memory, in plain OpenCL C on any device: each lane adds what its own
   sums need. u: the matrix block; f: its fragments by name; s: the sizes (GroupTile). #}
{% from "matrix_fragments.cl" import row, column, offset %}
{% from "matrix_swizzle.cl" import places %}
{% from "matrix_values.cl" import copies, values %}
{% set n = u.name %}
{% set w = s.warp_columns %}
{% set counts = f.sum.element_count %}
#ifndef SMR_UNIT_{{ n }}
#define SMR_UNIT_{{ n }}
typedef ushort __attribute__((may_alias)) {{ n }}_element; // sums take the place of tiles in local memory
typedef float{{ counts }} {{ n }}_sums;
#define {{ n }}_no_sums (({{ n }}_sums)(0))
{{ places(u) }}
#define {{ n }}_aligned(MEMORY) ((__local {{ n }}_element*)(MEMORY))
{{ values(u) }}
static inline void {{ n }}_store(__local float* tile, int stride, int lane, {{ n }}_sums c) {
    __local float* at = tile + ({{ row(f.sum) }}) * stride + {{ column(f.sum) }};
{% for e in range(counts) %}
    at[{{ offset(f.sum, e, "stride") }}] = c.s{{ e }};
{% endfor %}
}
{{ copies(u) }}
#define {{ n }}_written()
#define {{ n }}_begin()
#define {{ n }}_end()
#define {{ n }}_running(COUNT)
// The sums of eight columns from `first` on, {{ u.depth }} places of the reduction from the `k`-th on.
static inline {{ n }}_sums {{ n }}_added({{ n }}_sums c, __local const {{ n }}_element* a, __local const {{ n }}_element* b, int first, int k, int step, int across, int lane) {
    const int own = {{ row(f.sum) }}, column = first + {{ column(f.sum) }};
    for (int i = k; i < k + {{ u.depth }}; ++i) {
{% for e in range(counts) %}
        c.s{{ e }} += {{ n }}_value(a[{{ n }}_at(own + {{ f.sum.place(0, e)[0] }}, i)]) * {{ n }}_value(b[across ? {{ n }}_across(i, column + {{ f.sum.place(0, e)[1] }}, step) : {{ n }}_at(column + {{ f.sum.place(0, e)[1] }}, i)]);
{% endfor %}
    }
    return c;
}
#endif
#ifndef SMR_UNIT_{{ n }}_{{ w }}
#define SMR_UNIT_{{ n }}_{{ w }}
#define {{ n }}_product_{{ w }}(ACROSS, A, B, K, STEP) { {% for i in range(w // u.columns) %}c{{ i }} = {{ n }}_added(c{{ i }}, A, B, {{ i * u.columns }}, K, STEP, ACROSS, lane); {% endfor %}}
#define {{ n }}_complete_{{ w }}()
#endif
