{% from "entry.cl" import contracted, entry %}
// Row reductions: a work-item computes whole rows. Statistics of a row are scalars, what is used twice lies in scratch
// memory, and everything that only depends on the row and its elements is written in the same pass.

{{ contracted("OFF") }}
{{ entry(inside, in_group, parameters, tables, shared) }}
{{ body }}
}
{% if inside %}
{{ contracted("DEFAULT") }}
{% endif %}
