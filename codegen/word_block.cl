{% from "register_block.cl" import zeros %}
{# The products of one word of each column: `count` steps of k, the first in the lowest bits. Below the last bits of a power of
   two an integer becomes a float without a conversion: those of a float have 23, so that one shift serves the integers
   that fit into them, each at its own place and with its own power of two. The difference from that power and the zero
   point is exact. `ahead`: words so many bytes on are requested. #}
{% macro word(rows, columns, lanes, right, count, ahead) %}
{% for j in range(columns // lanes) %}
                    const uint{{ lanes }} w{{ j }} = *(__global const uint{{ lanes }}*)(words + {{ j * lanes }});
{% endfor %}
{% if ahead %}
{% for line in range(0, columns, 16) %}
                    SMR_PREFETCH(words + {{ ahead // 4 + line }});
{% endfor %}
{% endif %}
{% for step in range(count) %}
{% set first = step // right.in_place * right.in_place %}
{% set place = (step - first) * right.bits %}
{% for j in range(columns // lanes) %}
{% if step == first and step %}
                    const uint{{ lanes }} v{{ step }}_{{ j }} = w{{ j }} >> {{ step * right.bits }};
{% endif %}
{% set shifted = "v%d_%d"|format(first, j) if first else "w%d"|format(j) %}
{% set bits = shifted if (step + 1) * right.bits == 32 and not place else "(%s & %du)"|format(shifted, (2 ** right.bits - 1) * 2 ** place) %}
                    const float{{ lanes }} b{{ step }}_{{ j }} = as_float{{ lanes }}({{ bits }} | {{ right.power_bits(place) }}u) - {{ right.zero_text(place, j) }};
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
{% endif %}
{% endfor %}
{% set ahead = right.ahead if rows == 1 else 0 %}
{% if ahead %}
{% for line in range(0, columns, 16) %}
                SMR_PREFETCH(right_scales + block * {{ columns }} + {{ right.scales_ahead // 4 + line }});
{% endfor %}
{% endif %}
{{ zeros("d", rows, columns, lanes) }}
{% if count // each %}
                for (int word = 0; word < {{ count // each }}; ++word) {
                    __global const uint* words = right + (block * {{ right.block_words }} + word) * {{ columns }};
                    const int k = block * {{ right.block }} + word * {{ each }};
{{ word(rows, columns, lanes, right, each, ahead) }}
                }
{% endif %}
{% if count % each %}
                {
                    __global const uint* words = right + (block * {{ right.block_words }} + {{ count // each }}) * {{ columns }};
                    const int k = block * {{ right.block }} + {{ count // each * each }};
{{ word(rows, columns, lanes, right, count % each, 0) }}
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
