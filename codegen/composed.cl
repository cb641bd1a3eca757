{% from "entry.cl" import entry %}
{% for text in functions %}
{{ text }}
{% endfor %}
{% if form == "chain" %}
// Kernels one after the other: what a work-item reads of the kernels before, it wrote itself.
{% else %}
// Kernels side by side: none reads what another one writes; the number of the work-item says whose it is.
{% endif %}
{{ entry(inside, parameters, tables, shared) }}
{% if rows %}
    const int first_row = item / {{ rows.row_blocks }} * {{ rows.m }} + item % {{ rows.row_blocks }} * {{ rows.block_rows }};
{% for size in rows.sizes %}
    float rows{{ loop.index0 }}[{{ size }}] __attribute__((aligned(64)));
{% endfor %}
{% endif %}
{% for call in calls %}
{% if form == "chain" %}
    {{ call.name }}({{ call.arguments }}, item);
{% else %}
    {{ "else " if not loop.first }}if (item < {{ call.last }}) {{ call.name }}({{ call.arguments }}, item - {{ call.first }});
{% endif %}
{% endfor %}
}
