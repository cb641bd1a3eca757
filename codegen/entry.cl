{# Written before and behind a function in which each operation has to round by itself, so that a value that is computed
   twice is the same number both times. Else a compiler may contract a product and the subtraction of the largest product
   into one multiply-add, whose result is above zero, and exp of that overflows. #}
{% macro contracted(how) %}
#pragma OPENCL FP_CONTRACT {{ how }}
{%- endmacro %}
{# The local ID of a work-item, in a work-group of so many. Compilers that do not know the range of the ID divide as for
   negative numbers, once for each element of a tile. Where the work-group's size is a power of two, a mask tells it. #}
{% macro local_id(threads) -%}
(int)get_local_id(0){% if threads.bit_count() == 1 %} & {{ threads - 1 }}{% endif %}
{%- endmacro %}
{# A number that is not negative, so that compilers know it. #}
{% macro not_negative(text) -%}
({{ text }}) & 0x7fffffff
{%- endmacro %}
{# The beginning of a kernel: of one with its own launch, or of a function that a launch of several kernels calls (`inside`). #}
{% macro entry(inside, in_group, parameters, tables, shared, group=none, threads=0, numbered=true, vector_bits=0, name="smr_part") %}
{% if inside %}
{% for name, values in tables %}
__constant int {{ name }}[{{ values|length }}] = { {{ values|join(', ') }} };
{% endfor %}
{% if vector_bits %}
SMR_VECTORS({{ vector_bits }})
{% endif %}
static void {{ name }}(
    {{ parameters }},
    const int item{% if in_group %}, const int group, __local float* smr_local{% endif %}) {
{%- for array, first in shared %}

    __local {{ array.type }}* {{ array.name }} = (__local {{ array.type }}*)(smr_local + {{ first }});
{%- endfor %}
{%- else %}
{% if vector_bits %}
SMR_VECTORS({{ vector_bits }})
{% endif %}
__kernel {% if threads %}__attribute__((reqd_work_group_size({{ threads }}, 1, 1))) {% endif %}void smr_kernel(
    {{ parameters }}) {
{% for array, first in shared %}
    __local {{ array.type }} {{ array.name }}[{{ array.elements }}] __attribute__((aligned(16)));
{% endfor %}
{% for name, values in tables %}
    __constant int {{ name }}[{{ values|length }}] = { {{ values|join(', ') }} };
{% endfor %}
{% if numbered %}
    const int {{ group or "item" }} = {{ not_negative("(int)get_group_id(0)") if group else "(int)get_global_id(0)" }};
{%- endif %}
{%- endif %}
{% endmacro %}
