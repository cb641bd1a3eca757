{% from "entry.cl" import entry %}
// Contractions for CPUs whose finished rows are reduced before they leave the cache: a work-item owns whole rows, computes
// them into scratch memory, and goes on with the statistics and values of each row.
{{ entry(inside, in_group, parameters, tables, shared, vector_bits=vector_bits) }}
    const int row_block = item % {{ row_blocks }};
    const int {{ batch }} = item / {{ row_blocks }};
    const int first_row = row_block * {{ block_rows }};
    const int row_count = min({{ block_rows }}, {{ m }} - first_row);
{{ body }}
}
