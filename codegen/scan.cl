{% from "entry.cl" import entry %}
// Recurrences: the steps run one after the other inside the kernel, and keep what they give in memory, where the next step
// finds it. On CPUs a work-item does all of it, or its share of the steps; on GPUs a work-group does, with a barrier behind
// each tensor.

{{ entry(inside, in_group, parameters, tables, shared, "item" if group else none) }}
{{ body }}
}
