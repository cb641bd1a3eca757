{# The register block of a contraction on a CPU: rows x columns sums in vectors of `lanes`, one step of k at a time.
   Every `ahead` steps it asks for a cache line of the next tile of the right factor (0: never); the blocks of rows share its lines. #}
{% macro accumulate(rows, columns, lanes, k, left_space, left_pointer, right_space, ahead=0) %}
{% for i in range(rows) %}
            {{ left_space }}const float* a{{ i }} = {{ left_pointer.replace('ROW', 'min(r + %d, row_count - 1)' % i) }};
{% endfor %}
{% for i in range(rows) %}
            float{{ lanes }} {% for j in range(columns // lanes) %}c{{ i }}_{{ j }} = 0.0f{{ ', ' if not loop.last }}{% endfor %};
{% endfor %}
{% if ahead %}
            {{ right_space }}const float* next = right + {{ k * columns }} + r / {{ rows }} % {{ (ahead * columns + 15) // 16 }} * {{ k // ahead * 16 }};
            for (int part = 0; part < {{ k // ahead }}; ++part) {
            SMR_PREFETCH(next + part * 16);
#pragma unroll
            for (int k = part * {{ ahead }}; k < (part + 1) * {{ ahead }}; ++k) {
{% else %}
            for (int k = 0; k < {{ k }}; ++k) {
{% endif %}
{% for j in range(columns // lanes) %}
                const float{{ lanes }} b{{ j }} = *({{ right_space }}const smr_float{{ lanes }}*)(right + k * {{ columns }} + {{ j * lanes }});
{% endfor %}
{% for i in range(rows) %}
{% for j in range(columns // lanes) %}
                c{{ i }}_{{ j }} += a{{ i }}[k] * b{{ j }};
{% endfor %}
{% endfor %}
            }
{% if ahead %}
            }
{% endif %}
{%- endmacro %}
