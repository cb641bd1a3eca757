{# The register block of a contraction on a CPU: rows x columns sums in vectors of eight, one step of k at a time. #}
{% macro accumulate(rows, columns, k, left_space, left_pointer, right_space) %}
{% for i in range(rows) %}
            {{ left_space }}const float* a{{ i }} = {{ left_pointer.replace('ROW', 'min(r + %d, row_count - 1)' % i) }};
{% endfor %}
{% for i in range(rows) %}
            float8 {% for j in range(columns // 8) %}c{{ i }}_{{ j }} = 0.0f{{ ', ' if not loop.last }}{% endfor %};
{% endfor %}
            for (int k = 0; k < {{ k }}; ++k) {
{% for j in range(columns // 8) %}
                const float8 b{{ j }} = *({{ right_space }}const smr_float8*)(right + k * {{ columns }} + {{ j * 8 }});
{% endfor %}
{% for i in range(rows) %}
{% for j in range(columns // 8) %}
                c{{ i }}_{{ j }} += a{{ i }}[k] * b{{ j }};
{% endfor %}
{% endfor %}
            }
{%- endmacro %}
