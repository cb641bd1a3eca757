{% from "entry.cl" import entry %}
// Recurrences: the steps run one after the other inside the kernel; each stores its results in memory, where the next step
// reads them. On CPUs a work-item runs all steps, or its share of them. On GPUs the work-items of a work-group share the
// elements of a step, with a barrier behind each tensor.

{{ entry(inside, in_group, parameters, tables, shared, "item" if group else none) }}
{{ body }}
}
