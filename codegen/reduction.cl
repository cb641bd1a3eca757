// Row reductions: a work-item computes whole rows. Statistics of a row are scalars, what is used twice lies in scratch
// memory, and everything that only depends on the row and its elements is written in the same pass.

__kernel void smr_kernel(
    {{ parameters }}) {
{% for array in shared %}
    __local {{ array }} __attribute__((aligned(16)));
{% endfor %}
{% for name, values in tables %}
    __constant int {{ name }}[{{ values|length }}] = { {{ values|join(', ') }} };
{% endfor %}
    const int item = (int)get_global_id(0);
{{ body }}
}
