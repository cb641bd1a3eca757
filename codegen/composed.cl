{% from "entry.cl" import entry %}
{% for text in functions %}
{{ text }}
{% endfor %}
{% if form == "chain" %}
// Vertical fusion: each work-item runs several kernels. What it reads of the kernels before, it has written itself.
{% elif in_group %}
// Horizontal fusion: kernels that do not need each other. The number of the work-group selects the kernel, so that all
// work-items of a work-group reach the same barriers. The kernels share one array of local memory, and each divides the
// array in its own way. Each begins some bytes behind the kernel before: PoCL 3.0 crashed where its compiler had merged
// equal branches with barriers.
{% else %}
// Horizontal fusion: kernels that do not need each other. The number of the work-item selects the kernel.
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
