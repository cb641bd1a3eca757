{% from "register_block.cl" import accumulate %}
for (int tile = 0; tile < {{ tiles }}; ++tile) {
    {{ right_pointer }}
    for (int r = 0; r < row_count; r += {{ rows }}) {
{{ accumulate(rows, columns, k, left_space, left_pointer, right_space) }}
{% for i in range(rows) %}
        if (r + {{ i }} < row_count) {
{% for j in range(columns // 8) %}
            *(smr_float8*)(inner + (r + {{ i }}) * {{ padded }} + tile * {{ columns }} + {{ j * 8 }}) = c{{ i }}_{{ j }};
{% endfor %}
        }
{% endfor %}
    }
}
