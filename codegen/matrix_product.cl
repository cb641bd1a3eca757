{# The sums of one tile of a contraction on a matrix unit, which a work-group computes together; they end in local memory. #}
{% macro unit_product(s, u, left, right, first_turn, last_turn, turns_summed=0, fetched=false) %}
{{ unit_sums(s, u, left, right, first_turn, last_turn, turns_summed, fetched) }}
{{ unit_store(s, u) }}
{%- endmacro %}
{# The same sums in registers, c0, c1 and so on. A
   turn is one K step of the tile.
   s: sizes (GroupTile); u: the matrix block, whose functions begin with its name; left, right: how the factors' tiles are
   loaded. Tiles that are `copied` are under way for `s.buffers` - 1 turns; others pass through registers during one turn.
   first_turn, last_turn: C expressions.
   turns_summed: so many turns make a partial sum, and partial sums are added up (0: all turns make one sum).
   Units with operands in local memory read the tiles themselves, and go on while the next turn begins.
   fetched: the first tiles of the right factor are under way (`fetched_ahead`).
   Units with several passes take parts of floats, by fewer instructions where no float that passed through
   registers is rounded to an infinity.
   The text around it declares memory, thread, lane, slice, warp_row and warp_column, smr_exchange where the unit asks for
   it, and rare where the unit has several passes. #}
{% macro unit_sums(s, u, left, right, first_turn, last_turn, turns_summed=0, fetched=false) %}
{% set copies = left.copied or right.copied %}
{% set ahead = s.ahead(turns_summed > 0) %}
{% set count = s.warp_rows // u.rows * (s.warp_columns // u.columns) %}
{% set seen = u.passes > 1 and not copies %}
{{ left.declaration }}
{{ right.declaration }}
{% for i in range(count) %}
    {{ u.name }}_sums c{{ i }} = {{ u.name }}_no_sums{% if turns_summed %}, total{{ i }} = {{ u.name }}_no_sums{% endif %};
{% endfor %}
{% if seen %}
    // Two flags, so that a turn's flag is not written while another sub-group reads it.
    float largest = 0.0f;
    if (thread < 2) rare[thread] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
{% endif %}
{{ tiles(s, u) }}
{% if copies %}
{% for turn in range(ahead) %}
    if ({{ first_turn }} + {{ turn }} < {{ last_turn }}) {
        const int step = {{ first_turn }} + {{ turn }};
{{ copy(s, u, left, none if fetched else right) }}
    }
    {{ u.name }}_commit();
{% endfor %}
{% endif %}
    {
        const int step = {{ first_turn }};
{{ left.load }}
{{ right.load }}
    }
{% if left.written_out and last_turn is number and last_turn <= 4 %}
    #pragma unroll
{% endif %}
    for (int turn = {{ first_turn }}; turn < {{ last_turn }}; ++turn) {
        __local {{ u.name }}_element* left = left_tiles + {{ buffer(s, "turn") }} * {{ s.left_size }};
        __local {{ u.name }}_element* right = right_tiles + {{ buffer(s, "turn") }} * {{ s.right_size }};
{{ left.keep }}
{{ right.keep }}
{% if seen %}
        if (largest >= as_float(0x7f7ff000u)) rare[turn & 1] = 1;
{% endif %}
{% if copies %}
        {{ u.name }}_wait({{ ahead - 1 }});
{% endif %}
{% if s.swizzled %}
        {{ u.name }}_written();
{% endif %}
        barrier(CLK_LOCAL_MEM_FENCE);
{% if copies %}
        if (turn + {{ ahead }} < {{ last_turn }}) {
            const int step = turn + {{ ahead }};
{{ copy(s, u, left, right) }}
        }
        {{ u.name }}_commit();
{% endif %}
        if (turn + 1 < {{ last_turn }}) {
            const int step = turn + 1;
{{ left.load }}
{{ right.load }}
        }
        const int depth = slice * {{ s.step // s.slices }};
{% if s.swizzled %}
{{ products(s, u, right, ahead) }}
{% else %}
{% if seen %}
        if (rare[turn & 1]) {
{{ multiplied(s, u, right, "_any") }}
        }
        else {
{{ multiplied(s, u, right) }}
        }
{% else %}
{{ multiplied(s, u, right, "_any" if u.passes > 1 else "") }}
{% endif %}
{% endif %}
{% if turns_summed %}
        if ((turn - {{ first_turn }}) % {{ turns_summed }} == {{ turns_summed - 1 }} || turn + 1 == {{ last_turn }}) {
{% for i in range(count) %}
            total{{ i }} += c{{ i }};
            c{{ i }} = {{ u.name }}_no_sums;
{% endfor %}
        }
{% endif %}
{% if s.buffers == 1 %}
        barrier(CLK_LOCAL_MEM_FENCE);
{% endif %}
    }
{% if s.swizzled and ahead < s.buffers - 1 %}
    {{ u.name }}_complete_{{ s.warp_columns }}();
{% endif %}
{% if turns_summed %}
{% for i in range(count) %}
    c{{ i }} = total{{ i }};
{% endfor %}
{% endif %}
{%- endmacro %}
{# The products of a turn by a unit that takes both factors from registers.
   any: "_any" where floats may be infinite, or would be rounded to an infinity. #}
{% macro multiplied(s, u, right, any="") %}
{% set right_stride = s.left_stride if right.turned else s.right_stride %}
        #pragma unroll
        for (int k = 0; k < {{ s.step // s.slices }}; k += {{ u.depth }}) {
            __local const {{ u.name }}_element* a = left + warp_row * {{ s.left_stride }} + depth + k;
            __local const {{ u.name }}_element* b = right + {% if right.turned %}warp_column * {{ right_stride }} + depth + k{% else %}(depth + k) * {{ right_stride }} + warp_column{% endif %};
{% for i in range(s.warp_rows // u.rows) %}
            const {{ u.name }}_left a{{ i }} = {{ u.name }}_load_left{{ any }}(a + {{ i * u.rows * s.left_stride }}, {{ s.left_stride }}, lane);
{% endfor %}
{% for j in range(0, s.warp_columns // u.columns, 2) %}
            {{ u.name }}_right b{{ j }}, b{{ j + 1 }};
            {{ u.name }}_load_rights{{ "_turned" if right.turned }}{{ any }}(&b{{ j }}, &b{{ j + 1 }}, b + {{ j * u.columns * (right_stride if right.turned else 1) }}, {{ right_stride }}, lane);
{% endfor %}
{{ all_products(u, s.warp_rows // u.rows, s.warp_columns // u.columns) }}
        }
{%- endmacro %}
{# The products of `rows` fragments a0, a1 and so on and `columns` fragments b0, b1 and so on, added to c0, c1 and so on. The
   emulation of a unit waits in each product; compilers for processors treat each place that waits apart, so it has one. #}
{% macro all_products(u, rows, columns) %}
{% set n = u.name %}
{% set looped = u.exchange and rows * columns > 1 %}
{% if looped %}
            {{ n }}_left lefts[{{ rows }}] = { {%- for i in range(rows) %}a{{ i }}{{ ", " if not loop.last }}{% endfor -%} };
            {{ n }}_right rights[{{ columns }}] = { {%- for j in range(columns) %}b{{ j }}{{ ", " if not loop.last }}{% endfor -%} };
            {{ n }}_sums sums[{{ rows * columns }}] = { {%- for i in range(rows * columns) %}c{{ i }}{{ ", " if not loop.last }}{% endfor -%} };
{% endif %}
{% for pass in range(u.passes) %}
{% if looped %}
            for (int pair = 0; pair < {{ rows * columns }}; ++pair) {
                {{ n }}_multiply({{ pass }}, sums[pair], lefts[pair / {{ columns }}], rights[pair % {{ columns }}]);
            }
{% else %}
{% for i in range(rows) %}
{% for j in range(columns) %}
            {{ n }}_multiply({{ pass }}, c{{ i * columns + j }}, a{{ i }}, b{{ j }});
{% endfor %}
{% endfor %}
{% endif %}
{% endfor %}
{% if looped %}
{% for i in range(rows * columns) %}
            c{{ i }} = sums[{{ i }}];
{% endfor %}
{% endif %}
{%- endmacro %}
{# From registers to local memory, when all work-items have used the tiles that lie there. #}
{% macro unit_store(s, u) %}
    barrier(CLK_LOCAL_MEM_FENCE);
    {
        __local float* sums = memory + slice * {{ s.rows * s.sum_stride }};
{% for i in range(s.warp_rows // u.rows) %}
{% for j in range(s.warp_columns // u.columns) %}
        {{ u.name }}_store(sums + (warp_row + {{ i * u.rows }}) * {{ s.sum_stride }} + warp_column + {{ j * u.columns }}, {{ s.sum_stride }}, lane, c{{ i * (s.warp_columns // u.columns) + j }});
{% endfor %}
{% endfor %}
    }
    barrier(CLK_LOCAL_MEM_FENCE);
{% endmacro %}
{% macro buffer(s, turn) -%}{% if s.kept == 1 %}0{% elif s.buffers == 2 %}({{ turn }} & 1){% else %}({{ turn }} % {{ s.buffers }}){% endif %}{%- endmacro %}
{# Where the tiles of both factors lie. #}
{% macro tiles(s, u) %}
    __local {{ u.name }}_element* const left_tiles = {% if s.swizzled %}{{ u.name }}_aligned(memory){% else %}(__local {{ u.name }}_element*)memory{% endif %};
    __local {{ u.name }}_element* const right_tiles = left_tiles + {{ s.kept * s.left_size }};
{%- endmacro %}
{# Copies the tiles of the right factor that `unit_product` uses first; they count as a part of its first copies. The others are
   brought into the device's cache. #}
{% macro fetched_ahead(s, u, right, first_turn, last_turn, turns_summed) %}
{{ tiles(s, u) }}
{% for turn in range(s.ahead(turns_summed > 0)) %}
    if ({{ first_turn }} + {{ turn }} < {{ last_turn }}) {
        const int step = {{ first_turn }} + {{ turn }};
{{ copy(s, u, none, right) }}
    }
{% endfor %}
    for (int step = {{ first_turn }} + {{ s.ahead(turns_summed > 0) }}; step < {{ last_turn }}; ++step) {
{{ right.fetch }}
    }
{% endmacro %}
{% macro copy(s, u, left, right) %}
{% if left and left.copied %}
            __local {{ u.name }}_element* const left_into = left_tiles + {{ buffer(s, "step") }} * {{ s.left_size }};
{{ left.copy }}
{% endif %}
{% if right and right.copied %}
            __local {{ u.name }}_element* const right_into = right_tiles + {{ buffer(s, "step") }} * {{ s.right_size }};
{{ right.copy }}
{% endif %}
{% endmacro %}
{# The products of a turn by a unit that reads tiles in local memory. #}
{% macro products(s, u, right, ahead) %}
        __local const {{ u.name }}_element* a = left + warp_row * {{ u.row }};
        __local const {{ u.name }}_element* b = right + warp_column * {{ u.row if right.turned else s.step }};
        {{ u.name }}_begin();
{% for k in range(0, s.step // s.slices, u.depth) %}
        {{ u.name }}_product_{{ s.warp_columns }}({{ 0 if right.turned else 1 }}, a, b, depth + {{ k }}, {{ s.step }});
{% endfor %}
        {{ u.name }}_end();
{% if ahead < s.buffers - 1 %}
        {{ u.name }}_running(1);
{% else %}
        {{ u.name }}_complete_{{ s.warp_columns }}();
{% endif %}
{%- endmacro %}
