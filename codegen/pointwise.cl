// Elementwise and window kernels: prologue, core and epilogue are one expression for each element.
{% for name, values in tables %}
__constant int {{ name }}[{{ values|length }}] = { {{ values|join(', ') }} };
{% endfor %}

__kernel void smr_kernel(
    {{ parameters }}) {
    const int item = (int)get_global_id(0);
{{ body }}
}
