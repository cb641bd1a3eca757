{% from "entry.cl" import contracted, entry %}
// Elementwise and window kernels: one expression for each element holds the prologue, the core and the epilogue.

{% if rounded %}
{{ contracted("OFF") }}
{% endif %}
{{ entry(inside, in_group, parameters, tables, shared) }}
{{ body }}
}
{% if inside and rounded %}
{{ contracted("DEFAULT") }}
{% endif %}
