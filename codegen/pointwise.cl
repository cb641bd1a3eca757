{% from "entry.cl" import contracted, entry %}
// Elementwise and window kernels: prologue, core and epilogue are one expression for each element.

{% if rounded %}
{{ contracted("OFF") }}
{% endif %}
{{ entry(inside, in_group, parameters, tables, shared) }}
{{ body }}
}
{% if inside and rounded %}
{{ contracted("DEFAULT") }}
{% endif %}
