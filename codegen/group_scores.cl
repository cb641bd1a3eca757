{% from "group_product.cl" import product, finished, each %}
{% from "matrix_product.cl" import unit_product %}
for (int inner_tile = 0; inner_tile < {{ tiles }}; ++inner_tile) {
{% if own %}
    const int warp = thread / {{ s.lanes }}, slice = 0;
    const int warp_row = warp / {{ s.columns // s.warp_columns }} * {{ s.warp_rows }};
    const int warp_column = warp % {{ s.columns // s.warp_columns }} * {{ s.warp_columns }};
{% endif %}
{{ unit_product(s, u, left, right, 0, turns, turns_summed) if u else product(s, left, right, 0, turns, turns_summed) }}
{{ each(s) }}
        const int column = inner_tile * {{ s.columns }} + tile_column;
        if (column < {{ padded }}) {
{{ finished(s) }}
            *(__local float4*)(inner_rows + tile_row * {{ padded }} + column) = finished;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}
