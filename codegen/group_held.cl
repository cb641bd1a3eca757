{% from "matrix_fragments.cl" import row, column %}
{% from "matrix_product.cl" import all_products, unit_store, unit_sums %}
{# An attention whose scores stay in registers. s: the sizes of its product (GroupTile), q: those of the scores; u: the matrix
   block; right: how the right factor's tile is loaded, left and keys: the factors of the scores; rows: what is computed of a
   row, from `scores` to `weights`; fragments: the elements of a lane that become a left fragment. #}
{% set each = u.fragments.sum.element_count %}
{% set letters = "0123456789abcdef" %}
{% set across = s.warp_columns // u.columns %}
{% set stride = s.left_stride if right.turned else s.right_stride %}
{{ right.declaration }}
    __local {{ u.name }}_element* const values = (__local {{ u.name }}_element*)memory;
    {
        const int step = 0;
{% if right.copied %}
        __local {{ u.name }}_element* const right_into = values;
{{ right.copy }}
    }
    {{ u.name }}_commit();
{% else %}
        __local {{ u.name }}_element* const right = values;
{{ right.load }}
{{ right.keep }}
    }
{% endif %}
    const int own_row = {{ row(u.fragments.sum) }}, own_column = {{ column(u.fragments.sum) }};
    float scores[{{ count }}], weights[{{ count }}];
    {
        __local float* const behind_values = memory + {{ s.scores_place }};
        const int columns_of_slice = slice * {{ q.warp_columns }};
        {
            __local float* const memory = behind_values;
            const int slice = 0, warp_column = columns_of_slice;
{{ unit_sums(q, u, left, keys, 0, turns, turns_summed) }}
{% for i in range(count // each) %}
{% for e in range(each) %}
            scores[{{ i * each + e }}] = c{{ i }}.s{{ letters[e] }};
{% endfor %}
{% endfor %}
        }
    }
{{ rows }}
{% for i in range(s.warp_rows // u.rows * across) %}
    {{ u.name }}_sums c{{ i }} = {{ u.name }}_no_sums;
{% endfor %}
{% for step in fragments %}
    {
        __local const {{ u.name }}_element* b = values + (slice * {{ q.warp_columns }} + {{ loop.index0 * u.depth }}){% if not right.turned %} * {{ stride }}{% endif %};
{% for elements in step %}
        const {{ u.name }}_left a{{ loop.index0 }} = {{ u.name }}_chained({% for e in elements %}weights[{{ e }}]{{ ", " if not loop.last }}{% endfor %});
{% endfor %}
{% for j in range(0, across, 2) %}
        {{ u.name }}_right b{{ j }}, b{{ j + 1 }};
        {{ u.name }}_load_rights{{ "_turned" if right.turned }}(&b{{ j }}, &b{{ j + 1 }}, b + {{ j * u.columns * (stride if right.turned else 1) }}, {{ stride }}, lane);
{% endfor %}
{{ all_products(u, s.warp_rows // u.rows, across) }}
    }
{% endfor %}
{{ unit_store(s, u) }}
