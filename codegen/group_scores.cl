{% from "group_product.cl" import product, finished %}
for (int inner_tile = 0; inner_tile < {{ tiles }}; ++inner_tile) {
{{ product(s, left, right, 0, turns, matrix) }}
    for (int place = thread; place < {{ s.rows * s.columns // 4 }}; place += {{ s.threads }}) {
        const int column = inner_tile * {{ s.columns }} + place % {{ s.columns // 4 }} * 4;
        if (column < {{ padded }}) {
{{ finished(s) }}
            *(__local float4*)(inner_rows + place / {{ s.columns // 4 }} * {{ padded }} + column) = finished;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}
