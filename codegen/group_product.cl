{# The sums of one tile of a contraction, shared by a work-group, and how they reach local memory.
   Sums of more than `turns_summed` turns are sums of partial ones (0: none are).
   With one slice the sums stay in registers, and tiles of factors that are stored as halves are halves.
   s: sizes (GroupTile); left, right: how the factors' tiles are loaded; turns: steps of the reduction; `first_turn` and
   `last_turn` are C expressions. Needs memory, thread, lane, slice, warp_row and warp_column. #}
{% macro product(s, left, right, first_turn, last_turn, turns_summed=0) %}
{{ left.declaration }}
{{ right.declaration }}
{% if s.direct %}
    float4 c[{{ s.sums }}]{% if turns_summed %}, total[{{ s.sums }}]{% endif %};
    #pragma unroll
    for (int i = 0; i < {{ s.sums }}; ++i) {% if turns_summed %}total[i] = {% endif %}c[i] = 0.0f;
{% else %}
{% for i in range(s.sums) %}
    float4 c{{ i }} = 0.0f{% if turns_summed %}, total{{ i }} = 0.0f{% endif %};
{% endfor %}
{% endif %}
    {
        const int step = {{ first_turn }};
{{ left.load }}
{{ right.load }}
    }
    for (int turn = {{ first_turn }}; turn < {{ last_turn }}; ++turn) {
{% if s.direct %}
        __local {{ s.left_type }}* left = (__local {{ s.left_type }}*)left_tile{% if s.buffers == 2 %} + (turn & 1) * {{ s.rows * s.left_stride }}{% endif %};
        __local {{ s.right_type }}* right = (__local {{ s.right_type }}*)right_tile{% if s.buffers == 2 %} + (turn & 1) * {{ s.step * s.right_stride }}{% endif %};
{% else %}
        __local float* left = memory{% if s.buffers == 2 %} + (turn & 1) * {{ s.tile }}{% endif %};
        __local float* right = left + {{ s.rows * s.left_stride }};
{% endif %}
{{ left.keep }}
{{ right.keep }}
        barrier(CLK_LOCAL_MEM_FENCE);
        if (turn + 1 < {{ last_turn }}) {
            const int step = turn + 1;
{{ left.load }}
{{ right.load }}
        }
        const int depth = slice * {{ s.step // s.slices }};
        __local const {{ s.left_type }}* a = left + (warp_row + lane / 4) * {{ s.left_stride }} + depth;
        __local const {{ s.right_type }}* b = right + depth * {{ s.right_stride }} + warp_column + lane % 4 * 4;
        #pragma unroll
        for (int k = 0; k < {{ s.step // s.slices }}; k += 4) {
{% for i in range(s.warp_rows // 8) %}
            const float4 a{{ i }} = {{ four(s.left_type, "a + %d + k" % (8 * i * s.left_stride)) }};
{% endfor %}
{% for place in range(4) %}
{% for j in range(s.warp_columns // 16) %}
            {
                const float4 b0 = {{ four(s.right_type, "b + (k + %d) * %d + %d" % (place, s.right_stride, 16 * j)) }};
{% for i in range(s.warp_rows // 8) %}
                {{ s.sum(i * (s.warp_columns // 16) + j) }} += a{{ i }}.s{{ place }} * b0;
{% endfor %}
            }
{% endfor %}
{% endfor %}
        }
{% if turns_summed %}
        if ((turn - {{ first_turn }}) % {{ turns_summed }} == {{ turns_summed - 1 }} || turn + 1 == {{ last_turn }}) {
{% for i in range(s.sums) %}
            {{ s.sum(i, "total") }} += {{ s.sum(i) }};
            {{ s.sum(i) }} = 0.0f;
{% endfor %}
        }
{% endif %}
{% if s.buffers == 1 %}
        barrier(CLK_LOCAL_MEM_FENCE);
{% endif %}
    }
{% if turns_summed %}
{% for i in range(s.sums) %}
    {{ s.sum(i) }} = {{ s.sum(i, "total") }};
{% endfor %}
{% endif %}
    barrier(CLK_LOCAL_MEM_FENCE);
{% if not s.direct %}
    {
        __local float* sums = memory + slice * {{ s.rows * s.sum_stride }};
{% for i in range(s.warp_rows // 8) %}
{% for j in range(s.warp_columns // 16) %}
        *(__local float4*)(sums + (warp_row + lane / 4 + {{ 8 * i }}) * {{ s.sum_stride }} + warp_column + lane % 4 * 4 + {{ 16 * j }}) = c{{ i * (s.warp_columns // 16) + j }};
{% endfor %}
{% endfor %}
    }
    barrier(CLK_LOCAL_MEM_FENCE);
{% endif %}
{% endmacro %}

{# Four elements of a tile from local memory. #}
{% macro four(type, address) -%}
{% if type == "half" %}vload_half4(0, {{ address }}){% else %}*(__local const float4*)({{ address }}){% endif %}
{%- endmacro %}

{# The head of a loop over the sums of a tile that a work-item finishes: row and first column of each four in the tile. #}
{% macro each(s) %}
{% if s.direct %}
    #pragma unroll
    for (int place = 0; place < {{ s.sums }}; ++place) {
        const int tile_row = warp_row + lane / 4 + place / {{ s.warp_columns // 16 }} * 8;
        const int tile_column = warp_column + lane % 4 * 4 + place % {{ s.warp_columns // 16 }} * 16;
{% else %}
    for (int place = thread; place < {{ s.rows * s.columns // 4 }}; place += {{ s.threads }}) {
        const int tile_row = place / {{ s.columns // 4 }};
        const int tile_column = place % {{ s.columns // 4 }} * 4;
{% endif %}
{% endmacro %}

{# The sums of all slices at a work-item's place of the tile. #}
{% macro finished(s) %}
{% if s.direct %}
        const float4 finished = c[place];
{% else %}
        __local const float* sums = memory + place / {{ s.columns // 4 }} * {{ s.sum_stride }} + place % {{ s.columns // 4 }} * 4;
        float4 finished = *(__local const float4*)sums;
{% for i in range(1, s.slices) %}
        finished += *(__local const float4*)(sums + {{ i * s.rows * s.sum_stride }});
{% endfor %}
{% endif %}
{% endmacro %}
