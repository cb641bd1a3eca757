{# How a kernel's body begins: as a kernel of its own, or as a function that a launch of several kernels calls. #}
{% macro entry(inside, parameters, tables, shared, group=false, numbered=true) %}
{% if inside %}
{% for name, values in tables %}
__constant int {{ name }}[{{ values|length }}] = { {{ values|join(', ') }} };
{% endfor %}
static void smr_part(
    {{ parameters }},
    const int item) {
{%- else %}
__kernel void smr_kernel(
    {{ parameters }}) {
{% for array in shared %}
    __local {{ array }} __attribute__((aligned(16)));
{% endfor %}
{% for name, values in tables %}
    __constant int {{ name }}[{{ values|length }}] = { {{ values|join(', ') }} };
{% endfor %}
{% if numbered %}
    const int item = (int)get_{{ "group" if group else "global" }}_id(0);
{%- endif %}
{%- endif %}
{% endmacro %}
