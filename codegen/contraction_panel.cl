{% from "entry.cl" import entry %}
{% from "register_block.cl" import accumulate, accumulate_in_place %}
{% from "word_block.cl" import accumulate_words %}
{% from "byte_block.cl" import accumulate_bytes %}
{% macro rows_of_columns(first, last, rows, part, turn) %}
        for (int r = {{ first }}; r < {{ last }}; r += {{ rows }}) {
            {{ sum_type }}{{ lanes }} result[{{ rows * columns // lanes }}];
            const int valid_rows = min({{ rows }}, row_count - r);
{% if row_bytes and not part.bytes_zeros %}
#ifdef SMR_BYTE_TILES
            smr_byte_tiles((size_t)({{ left_pointer.replace('ROW', 'r') }}), {{ row_bytes }}, (size_t)right, {{ 4 * columns }}, {{ (k + 3) // 4 }}, (size_t)result, valid_rows);
{% for j in range(columns // lanes) %}
            const int{{ lanes }} sum{{ j }} = *({{ part.bytes_space }}const smr_int{{ lanes }}*)(right_sums + {{ j * lanes }});
{% endfor %}
            if (left_zero != 0) for (int i = 0; i < valid_rows; ++i) {
{% for j in range(columns // lanes) %}
                result[i * {{ columns // lanes }} + {{ j }}] += sum{{ j }} * left_zero;
{% endfor %}
            }
#else
{% endif %}
{% if part.in_place %}
{{ accumulate_in_place(rows, columns, lanes, left_space, left_pointer, part.in_place) }}
{% elif of_bytes %}
{{ accumulate_bytes(rows, columns, lanes, (k + 3) // 4, rest, left_space, left_pointer, flip, part, 0 if rest else part.ahead, turn) }}
{% elif part.words %}
{{ accumulate_words(rows, columns, lanes, left_space, left_pointer, part.words) }}
{% else %}
{{ accumulate(rows, columns, lanes, k, left_space, left_pointer, part.space, part.ahead, part.ahead_lines, turn, block) }}
{% endif %}
{% for i in range(rows) %}
{% for j in range(columns // lanes) %}
            result[{{ i * (columns // lanes) + j }}] = c{{ i }}_{{ j }};
{% endfor %}
{% endfor %}
{% if row_bytes and not part.bytes_zeros %}
#endif
{% endif %}
{% if short %}
#pragma unroll
            for (int i = 0; i < {{ rows }}; ++i) if (i < valid_rows) {
{% else %}
            for (int i = 0; i < valid_rows; ++i) {
{% endif %}
                const int {{ row }} = first_row + r + i;
                const {{ sum_type }}* accumulated = (const {{ sum_type }}*)(result + i * {{ columns // lanes }});
{{ part.epilogue }}
            }
        }
{% endmacro %}
// Contractions for CPUs. A work-item owns a block of rows of the result and a range of its columns.
//   1. Rows of the left factor that are not contiguous in memory, or that have to be computed (normalised rows,
//      padded convolution windows), are staged into a panel that stays in cache.
//   2. The right factor lies in packed panels of {{ columns }} columns: constants were packed when the plan was made, other
//      factors are packed here{{ ", or read where they lie" if parts | selectattr("in_place") | list }}.
//   3. Register tiles of {{ rows }} x {{ columns }} sums accumulate the products.
//   4. The epilogue takes the rows of a finished register tile and writes them with vector stores.

{{ entry(inside, in_group, parameters, tables, shared, vector_bits=vector_bits) }}
    const int column_block = item % {{ column_blocks }};
    const int row_block = item / {{ column_blocks }} % {{ row_blocks }};
    const int {{ batch }} = item / {{ column_blocks * row_blocks }};
    const int first_row = row_block * {{ block_rows }};
    const int row_count = min({{ block_rows }}, {{ m }} - first_row);
{{ body }}
    const int first_tile = column_block * {{ tiles_per_block }};
    const int last_tile = first_tile + {{ tiles_per_block }};
{% for part in parts %}
    for (int tile = max(first_tile - {{ part.first }}, 0); tile < min(last_tile - {{ part.first }}, {{ part.tiles }}); ++tile) {
        {{ part.pointer }}
{{ rows_of_columns(0, "row_count" if not tail else "min(row_count, %d)" % (block_rows - tail), rows, part, "r / %d" % rows) -}}
{% if tail %}
{{ rows_of_columns(block_rows - tail, "row_count", tail, part, (block_rows - tail) // rows) -}}
{% endif %}
    }
{% endfor %}
}
