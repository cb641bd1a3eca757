{% from "register_block.cl" import zeros %}
{# The products of one word of each column: `count` steps of k, the first in the lowest bits. An integer below 2^23 becomes a
   float in the last bits of 0x4b000000, which is 2^23; `zero` is 2^23 + the zero point, so that the difference is exact. #}
{% macro word(rows, columns, lanes, right, count) %}
{% for j in range(columns // lanes) %}
                    const uint{{ lanes }} w{{ j }} = *(__global const uint{{ lanes }}*)(words + {{ j * lanes }});
{% endfor %}
{% for step in range(count) %}
{% for j in range(columns // lanes) %}
{% set shifted = "w%d >> %d"|format(j, step * right.bits) if step else "w%d"|format(j) %}
{% set bits = "(%s)"|format(shifted) if (step + 1) * right.bits == 32 else "(%s & %du)"|format("(%s)"|format(shifted) if step else shifted, 2 ** right.bits - 1) %}
                    const float{{ lanes }} b{{ step }}_{{ j }} = as_float{{ lanes }}({{ bits }} | 0x4b000000u) - zero{{ j }};
{% endfor %}
{% for i in range(rows) %}
{% for j in range(columns // lanes) %}
                    d{{ i }}_{{ j }} += a{{ i }}[k + {{ step }}] * b{{ step }}_{{ j }};
{% endfor %}
{% endfor %}
{% endfor %}
{%- endmacro %}
{# The products of `count` steps of k that share a scale: they are summed before they are scaled. #}
{% macro block_of_words(rows, columns, lanes, right, count) %}
{% set each = 32 // right.bits %}
{% for j in range(columns // lanes) %}
                const float{{ lanes }} scale{{ j }} = *(__global const float{{ lanes }}*)(right_scales + block * {{ columns }} + {{ j * lanes }});
{% if right.zero is none %}
                const float{{ lanes }} zero{{ j }} = convert_float{{ lanes }}(*(__global const uchar{{ lanes }}*)(right_zeros + block * {{ columns }} + {{ j * lanes }})) + 8388608.0f;
{% else %}
                const float{{ lanes }} zero{{ j }} = {{ 8388608 + right.zero }}.0f;
{% endif %}
{% endfor %}
{{ zeros("d", rows, columns, lanes) }}
{% if count // each %}
                for (int word = 0; word < {{ count // each }}; ++word) {
                    __global const uint* words = right + (block * {{ right.block_words }} + word) * {{ columns }};
                    const int k = block * {{ right.block }} + word * {{ each }};
{{ word(rows, columns, lanes, right, each) }}
                }
{% endif %}
{% if count % each %}
                {
                    __global const uint* words = right + (block * {{ right.block_words }} + {{ count // each }}) * {{ columns }};
                    const int k = block * {{ right.block }} + {{ count // each * each }};
{{ word(rows, columns, lanes, right, count % each) }}
                }
{% endif %}
{% for i in range(rows) %}
{% for j in range(columns // lanes) %}
                c{{ i }}_{{ j }} += d{{ i }}_{{ j }} * scale{{ j }};
{% endfor %}
{% endfor %}
{%- endmacro %}
{# The register tile of a contraction on a CPU, as in `register_block.cl`, over a right factor of integers in words. #}
{% macro accumulate_words(rows, columns, lanes, left_space, left_pointer, right) %}
{% for i in range(rows) %}
            {{ left_space }}const float* a{{ i }} = {{ left_pointer.replace('ROW', 'min(r + %d, row_count - 1)' % i) }};
{% endfor %}
{{ zeros("c", rows, columns, lanes) }}
            for (int block = 0; block < {{ right.blocks }}; ++block) {
{{ block_of_words(rows, columns, lanes, right, right.block) }}
            }
{% if right.rest %}
            {
                const int block = {{ right.blocks }};
{{ block_of_words(rows, columns, lanes, right, right.rest) }}
            }
{% endif %}
{%- endmacro %}
