// Elementwise and window kernels: prologue, core and epilogue are one expression for each element.

__kernel void smr_kernel(
    {{ parameters }}) {
{% for name, values in tables %}
    __constant int {{ name }}[{{ values|length }}] = { {{ values|join(', ') }} };
{% endfor %}
    const int item = (int)get_global_id(0);
{{ body }}
}
