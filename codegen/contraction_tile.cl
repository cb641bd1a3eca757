{% from "entry.cl" import entry %}
// Contractions in registers, for textures and for devices without wide vectors: a work-item computes {{ rows }} rows by
// {{ width }} columns. Both factors are read through their own index maps; four steps of k share one texel of the left factor.

{{ entry(inside, in_group, parameters, tables, shared) }}
{{ body }}
}
