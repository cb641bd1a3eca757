// Recurrences: the steps run one after the other inside the kernel, and keep what they give in memory, where the next step
// finds it. On CPUs a work-item does all of it; on GPUs a work-group does, with a barrier behind each tensor.

__kernel void smr_kernel(
    {{ parameters }}) {
{% for array in shared %}
    __local {{ array }} __attribute__((aligned(16)));
{% endfor %}
{% for name, values in tables %}
    __constant int {{ name }}[{{ values|length }}] = { {{ values|join(', ') }} };
{% endfor %}
#ifdef SMR_CPU
    const int item = (int)get_global_id(0);
#else
    const int item = (int)get_group_id(0);
#endif
{{ body }}
}
