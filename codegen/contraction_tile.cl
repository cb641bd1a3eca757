{% from "entry.cl" import entry %}
// Contractions in registers, for textures and for devices without wide vectors. A work-item computes {{ rows }} rows by
// {{ width }} columns. It reads both factors through their index maps; a texel of the left factor serves four steps of k.

{{ entry(inside, in_group, parameters, tables, shared) }}
{{ body }}
}
