{% from "entry.cl" import entry %}
{% for text in functions %}
{{ text }}
{% endfor %}
{% if form == "chain" %}
// Kernels one after the other: what a work-item reads of the kernels before, it wrote itself.
{% elif in_group %}
// Kernels side by side: none reads what another one writes; the number of the work-group says whose it is, and all of its
// work-items come to the same barriers. Local memory is one array, which each kernel parts in its own way; each begins some
// bytes further on, because PoCL 3.0 crashed where its compiler had made one of equal branches with barriers.
{% else %}
// Kernels side by side: none reads what another one writes; the number of the work-item says whose it is.
{% endif %}
{{ entry(inside, false, parameters, tables, shared, none, threads) }}
{% if in_group %}
    const int group = (int)get_group_id(0);
    __local float smr_local[{{ local_floats }}] __attribute__((aligned(16)));
{% endif %}
{% if rows %}
    const int first_row = item / {{ rows.row_blocks }} * {{ rows.m }} + item % {{ rows.row_blocks }} * {{ rows.block_rows }};
{% for size in rows.sizes %}
    float rows{{ loop.index0 }}[{{ size }}] __attribute__((aligned(64)));
{% endfor %}
{% endif %}
{% for call in calls %}
{% if form == "chain" %}
    {{ call.name }}({{ call.arguments }}, item);
{% elif in_group %}
    {{ "else " if not loop.first }}if (group < {{ call.last_group }}) {{ call.name }}({{ call.arguments }}, item - {{ call.first }}, group - {{ call.first_group }}, smr_local + {{ call.local }});
{% else %}
    {{ "else " if not loop.first }}if (item < {{ call.last }}) {{ call.name }}({{ call.arguments }}, item - {{ call.first }});
{% endif %}
{% endfor %}
}
