{% from "register_block.cl" import accumulate %}
{% from "word_block.cl" import accumulate_words %}
{% macro rows_of_columns(first, last, rows, turn) %}
    for (int r = {{ first }}; r < {{ last }}; r += {{ rows }}) {
{% if words %}
{{ accumulate_words(rows, columns, lanes, left_space, left_pointer, words) }}
{% else %}
{{ accumulate(rows, columns, lanes, k, left_space, left_pointer, right_space, ahead, ahead_lines, turn, block) }}
{% endif %}
{% for i in range(rows) %}
        if (r + {{ i }} < row_count) {
{% for j in range(columns // lanes) %}
            *(smr_float{{ lanes }}*)(inner + (r + {{ i }}) * {{ padded }} + tile * {{ columns }} + {{ j * lanes }}) = c{{ i }}_{{ j }};
{% endfor %}
        }
{% endfor %}
    }
{% endmacro %}
for (int tile = 0; tile < {{ tiles }}; ++tile) {
    {{ right_pointer }}
{{ rows_of_columns(0, "row_count" if not tail else "min(row_count, %d)" % (block_rows - tail), rows, "r / %d" % rows) -}}
{% if tail %}
{{ rows_of_columns(block_rows - tail, "row_count", tail, (block_rows - tail) // rows) -}}
{% endif %}
}
