// Elementwise and window kernels: prologue, core and epilogue are one expression for each element.

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
