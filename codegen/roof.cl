// The most that a device does: multiply-adds in registers, and floats that are copied through memory.

__kernel void smr_sums(__global float* y, const int turns) {
    const int item = (int)get_global_id(0);
    const float{{ width }} a = (float){{ '(1.0f + item * 1e-9f)' }};
{% for i in range(chains) %}
    float{{ width }} c{{ i }} = (float)({{ i }}.0f);
{% endfor %}
    for (int k = 0; k < turns; ++k) {
{% for i in range(chains) %}
        c{{ i }} = c{{ i }} * a + a;
{% endfor %}
    }
    const float{{ width }} sum = {% for i in range(chains) %}c{{ i }}{{ ' + ' if not loop.last }}{% endfor %};
    y[item] = sum.s0 + sum.s{{ width - 1 }};
}

__kernel void smr_copy(__global const float{{ width }}* x, __global float{{ width }}* y, const int each) {
    const int item = (int)get_global_id(0);
{% if blocked %}
    for (int i = 0; i < each; ++i) y[item * each + i] = x[item * each + i];
{% else %}
    for (int i = 0; i < each; ++i) y[i * get_global_size(0) + item] = x[i * get_global_size(0) + item];
{% endif %}
}
