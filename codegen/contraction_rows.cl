// Contractions for CPUs whose finished rows are reduced before they leave the cache: a work-item owns whole rows, computes
// them into scratch memory, and goes on with the statistics and values of each row.
__kernel void smr_kernel(
    {{ parameters }}) {
{% for array in shared %}
    __local {{ array }} __attribute__((aligned(16)));
{% endfor %}
{% for name, values in tables %}
    __constant int {{ name }}[{{ values|length }}] = { {{ values|join(', ') }} };
{% endfor %}
    const int item = (int)get_global_id(0);
    const int row_block = item % {{ row_blocks }};
    const int {{ batch }} = item / {{ row_blocks }};
    const int first_row = row_block * {{ block_rows }};
    const int row_count = min({{ block_rows }}, {{ m }} - first_row);
{{ body }}
}
