{% from "register_block.cl" import accumulate %}
// Measurements of a CPU for `smartmem calibrate`: each kernel does `turns` times one thing that emitted kernels consist of.

{% for tile in tiles %}
// a register tile of {{ tile.rows }} x {{ tile.columns }}; both factors lie in the first-level cache
SMR_VECTORS({{ 32 * tile.lanes }})
__kernel void {{ tile.kernel }}(__global const float* left, __global const float* right, __global float* sums, const int turns) {
    const int row_count = {{ tile.rows }}, r = 0;
    for (int turn = 0; turn < turns; ++turn) {
{{ accumulate(tile.rows, tile.columns, tile.lanes, steps, "__global ", "left + (ROW) * %d"|format(steps), "__global ") }}
{% for i in range(tile.rows) %}
{% for j in range(tile.columns // tile.lanes) %}
        *(__global smr_float{{ tile.lanes }}*)(sums + {{ i * tile.columns + j * tile.lanes }}) += c{{ i }}_{{ j }};
{% endfor %}
{% endfor %}
    }
}
{% endfor %}

// bandwidth: each work-item reads `each` floats that no other one reads
__kernel void smr_read(__global const float* x, __global float* y, const int each, const int turns) {
    __global const float* own = x + (size_t)get_global_id(0) * each;
    float{{ width }} {% for i in range(chains) %}c{{ i }} = 0.0f{{ ", " if not loop.last }}{% endfor %};
    for (int turn = 0; turn < turns; ++turn) {
        for (int i = 0; i < each; i += {{ width * chains }}) {
{% for i in range(chains) %}
            c{{ i }} += *(__global const smr_float{{ width }}*)(own + i + {{ i * width }});
{% endfor %}
        }
    }
    const float{{ width }} sum = {% for i in range(chains) %}c{{ i }}{{ " + " if not loop.last }}{% endfor %};
    y[get_global_id(0)] = sum.s0 + sum.s{{ width - 1 }};
}

{% for name, asks in (("smr_loads", false), ("smr_requests", true)) %}
// the same cache lines again and again{{ ", each prefetched before it is read" if asks }}
__kernel void {{ name }}(__global const float* x, __global float* y, const int turns) {
    float{{ width }} c = 0.0f;
    for (int turn = 0; turn < turns; ++turn) {
        for (int i = 0; i < {{ near }}; i += {{ line }}) {
{% if asks %}
            SMR_PREFETCH(x + i + {{ line }});
{% endif %}
            c += *(__global const smr_float{{ width }}*)(x + i);
        }
    }
    y[0] = c.s0 + c.s{{ width - 1 }};
}
{% endfor %}

__kernel void smr_exponentials(__global const float* x, __global float* y, const int turns) {
    for (int turn = 0; turn < turns; ++turn) {
        for (int i = 0; i < {{ near }}; i += {{ width }}) {
            *(__global smr_float{{ width }}*)(y + i) = smr_exp{{ width }}(*(__global const smr_float{{ width }}*)(x + i));
        }
    }
}

__kernel void smr_barriers(__global float* y, const int turns) {
    __local float met[{{ group }}];
    const int item = (int)get_local_id(0);
    met[item] = (float)item;
    for (int turn = 0; turn < turns; ++turn) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const float other = met[{{ group - 1 }} - item];
        barrier(CLK_LOCAL_MEM_FENCE);
        met[item] = other + 1.0f;
    }
    y[item] = met[item];
}

{% if images %}
__kernel void smr_texels(read_only image2d_t x, __global float* y, const int wide, const int high, const int turns) {
    float4 sum = 0.0f;
    for (int turn = 0; turn < turns; ++turn) {
        for (int row = 0; row < high; ++row) {
            for (int column = 0; column < wide; ++column) sum += read_imagef(x, smr_sampler, (int2)(column, row));
        }
    }
    y[0] = sum.s0 + sum.s3;
}
{% endif %}
