{% from "entry.cl" import entry %}
// Contractions for CPUs with an epilogue that reduces whole rows, as a normalisation behind a product does. A work-item
// owns whole rows of the product: it computes them into scratch memory, where they stay in cache, and then the statistics
// and results of each row.
{{ entry(inside, in_group, parameters, tables, shared, vector_bits=vector_bits) }}
    const int row_block = item % {{ row_blocks }};
    const int {{ batch }} = item / {{ row_blocks }};
    const int first_row = row_block * {{ block_rows }};
    const int row_count = min({{ block_rows }}, {{ m }} - first_row);
{{ body }}
}
