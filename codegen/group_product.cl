{# The sums of one tile of a contraction, which a work-group computes together. A turn is one K step of the tile. The sums of
   several slices end in local memory; those of one slice stay in registers, and then factors that are stored as halves
   are halves in local memory, too.
   s: sizes (GroupTile); left, right: how the factors' tiles are loaded; first_turn, last_turn: C expressions.
   turns_summed: so many turns make a partial sum, and partial sums are added up (0: all turns make one sum).
   The text around it declares memory, thread, lane, slice, warp_row and warp_column. #}
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

{# The head of a loop over the sums that a work-item finishes, four neighbours at a time, with their row and first column. #}
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

{# Four neighbouring sums at `place`, added over all slices. #}
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

{# Adds up the partial sums of all work-groups of a tile, in local memory. Several of a work-item's places are asked for at
   once: one after the other, each would wait for memory. #}
{% macro met(s, splits) %}
{% set places = s.rows * s.columns // 4 %}
{% set turns = [4, (places + s.threads - 1) // s.threads]|min %}
    for (int first = thread; first < {{ places }}; first += {{ turns * s.threads }}) {
        float4 met[{{ turns }}];
        #pragma unroll
        for (int i = 0; i < {{ turns }}; ++i) {
            const int place = min(first + i * {{ s.threads }}, {{ places - 1 }});
            met[i] = 0.0f;
            #pragma unroll
            for (int part = 0; part < {{ splits }}; ++part) {
                volatile __global float4* sums = (volatile __global float4*)(partial + part * {{ s.rows * s.columns }});
                met[i] += sums[place];
            }
        }
        #pragma unroll
        for (int i = 0; i < {{ turns }}; ++i) {
            const int place = first + i * {{ s.threads }};
            if (place < {{ places }}) *(__local float4*)(memory + place / {{ s.columns // 4 }} * {{ s.sum_stride }} + place % {{ s.columns // 4 }} * 4) = met[i];
        }
    }
{% endmacro %}
