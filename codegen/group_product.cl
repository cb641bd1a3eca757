{# The sums of one tile of a contraction, shared by a work-group, and how they reach local memory.
   s: sizes (GroupSchedule); left, right: how the factors' tiles are loaded; turns: steps of the reduction; `first_turn` and
   `last_turn` are C expressions. Needs memory, thread, lane, slice, warp_row and warp_column. #}
{% macro product(s, left, right, first_turn, last_turn, matrix) %}
{{ left.declaration }}
{{ right.declaration }}
{% for i in range(s.sums) %}
    float4 c{{ i }} = 0.0f;
{% endfor %}
    {
        const int step = {{ first_turn }};
{{ left.load }}
{{ right.load }}
    }
    for (int turn = {{ first_turn }}; turn < {{ last_turn }}; ++turn) {
        __local float* left = memory{% if s.buffers == 2 %} + (turn & 1) * {{ s.tile }}{% endif %};
        __local float* right = left + {{ s.rows * s.left_stride }};
{{ left.keep }}
{{ right.keep }}
        barrier(CLK_LOCAL_MEM_FENCE);
        if (turn + 1 < {{ last_turn }}) {
            const int step = turn + 1;
{{ left.load }}
{{ right.load }}
        }
        const int depth = slice * {{ s.step // s.slices }};
{% if matrix %}
        #pragma unroll
        for (int k = 0; k < {{ s.step // s.slices }}; k += 8) {
            __local const float* a = left + (warp_row + lane / 4) * {{ s.left_stride }} + depth + k + lane % 4;
            __local const float* b = right + (depth + k + lane % 4) * {{ s.right_stride }} + warp_column + lane / 4;
{% for i in range(s.warp_rows // 16) %}
            const float4 a{{ i }} = (float4)(a[{{ 16 * i * s.left_stride }}], a[{{ (16 * i + 8) * s.left_stride }}], a[{{ 16 * i * s.left_stride + 4 }}], a[{{ (16 * i + 8) * s.left_stride + 4 }}]);
            const uint4 ah{{ i }} = (uint4)(smr_high(a{{ i }}.s0), smr_high(a{{ i }}.s1), smr_high(a{{ i }}.s2), smr_high(a{{ i }}.s3));
            const uint4 al{{ i }} = (uint4)(smr_low(a{{ i }}.s0, ah{{ i }}.s0), smr_low(a{{ i }}.s1, ah{{ i }}.s1), smr_low(a{{ i }}.s2, ah{{ i }}.s2), smr_low(a{{ i }}.s3, ah{{ i }}.s3));
{% endfor %}
{% for j in range(s.warp_columns // 8) %}
            const float b{{ j }}_0 = b[{{ 8 * j }}], b{{ j }}_1 = b[{{ 8 * j + 4 * s.right_stride }}];
            const uint bh{{ j }}_0 = smr_high(b{{ j }}_0), bh{{ j }}_1 = smr_high(b{{ j }}_1);
            const uint bl{{ j }}_0 = smr_low(b{{ j }}_0, bh{{ j }}_0), bl{{ j }}_1 = smr_low(b{{ j }}_1, bh{{ j }}_1);
{% endfor %}
{% for left_part, right_part in [("l", "h"), ("h", "l"), ("h", "h")] %}
{% for i in range(s.warp_rows // 16) %}
{% for j in range(s.warp_columns // 8) %}
            SMR_MMA(c{{ i * (s.warp_columns // 8) + j }}, a{{ left_part }}{{ i }}, b{{ right_part }}{{ j }}_0, b{{ right_part }}{{ j }}_1);
{% endfor %}
{% endfor %}
{% endfor %}
        }
{% else %}
        __local const float* a = left + (warp_row + lane / 4) * {{ s.left_stride }} + depth;
        __local const float* b = right + depth * {{ s.right_stride }} + warp_column + lane % 4 * 4;
        #pragma unroll
        for (int k = 0; k < {{ s.step // s.slices }}; k += 4) {
{% for i in range(s.warp_rows // 8) %}
            const float4 a{{ i }} = *(__local const float4*)(a + {{ 8 * i * s.left_stride }} + k);
{% endfor %}
{% for place in range(4) %}
{% for j in range(s.warp_columns // 16) %}
            {
                const float4 b0 = *(__local const float4*)(b + (k + {{ place }}) * {{ s.right_stride }} + {{ 16 * j }});
{% for i in range(s.warp_rows // 8) %}
                c{{ i * (s.warp_columns // 16) + j }} += a{{ i }}.s{{ place }} * b0;
{% endfor %}
            }
{% endfor %}
{% endfor %}
        }
{% endif %}
{% if s.buffers == 1 %}
        barrier(CLK_LOCAL_MEM_FENCE);
{% endif %}
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    {
        __local float* sums = memory + slice * {{ s.rows * s.sum_stride }};
{% if matrix %}
{% for i in range(s.warp_rows // 16) %}
{% for j in range(s.warp_columns // 8) %}
        *(__local float2*)(sums + (warp_row + {{ 16 * i }} + lane / 4) * {{ s.sum_stride }} + warp_column + {{ 8 * j }} + lane % 4 * 2) = c{{ i * (s.warp_columns // 8) + j }}.s01;
        *(__local float2*)(sums + (warp_row + {{ 16 * i + 8 }} + lane / 4) * {{ s.sum_stride }} + warp_column + {{ 8 * j }} + lane % 4 * 2) = c{{ i * (s.warp_columns // 8) + j }}.s23;
{% endfor %}
{% endfor %}
{% else %}
{% for i in range(s.warp_rows // 8) %}
{% for j in range(s.warp_columns // 16) %}
        *(__local float4*)(sums + (warp_row + lane / 4 + {{ 8 * i }}) * {{ s.sum_stride }} + warp_column + lane % 4 * 4 + {{ 16 * j }}) = c{{ i * (s.warp_columns // 16) + j }};
{% endfor %}
{% endfor %}
{% endif %}
    }
    barrier(CLK_LOCAL_MEM_FENCE);
{% endmacro %}

{# The sums of all slices at a work-item's place of the tile. #}
{% macro finished(s) %}
        __local const float* sums = memory + place / {{ s.columns // 4 }} * {{ s.sum_stride }} + place % {{ s.columns // 4 }} * 4;
        float4 finished = *(__local const float4*)sums;
{% for i in range(1, s.slices) %}
        finished += *(__local const float4*)(sums + {{ i * s.rows * s.sum_stride }});
{% endfor %}
{% endmacro %}
