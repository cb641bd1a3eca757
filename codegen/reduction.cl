{% from "entry.cl" import contracted, entry %}
// Row reductions: a work-item computes whole rows. Statistics of a row are scalars, values of a row that are used twice lie
// in scratch memory, and results that depend on the row alone are written in the same pass.

{{ contracted("OFF") }}
{{ entry(inside, in_group, parameters, tables, shared) }}
{{ body }}
}
{% if inside %}
{{ contracted("DEFAULT") }}
{% endif %}
