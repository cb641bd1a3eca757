// Contractions in registers, for textures and for devices without wide vectors: a work-item computes {{ rows }} rows by
// {{ width }} columns. Both factors are read through their own index maps; four steps of k share one texel of the left factor.

__kernel void smr_kernel(
    {{ parameters }}) {
{% for array in shared %}
    __local {{ array }} __attribute__((aligned(16)));
{% endfor %}
{% for name, values in tables %}
    __constant int {{ name }}[{{ values|length }}] = { {{ values|join(', ') }} };
{% endfor %}
    const int item = (int)get_global_id(0);
{{ body }}
}
