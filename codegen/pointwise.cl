{% from "entry.cl" import entry %}
// Elementwise and window kernels: prologue, core and epilogue are one expression for each element.

{{ entry(inside, in_group, parameters, tables, shared) }}
{{ body }}
}
