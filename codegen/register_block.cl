{# The register tile of a contraction on a CPU: rows x columns sums in vectors of `lanes`, one step of k at a time.
   ahead: after so many steps `lines` cache lines of the right factor's next tile are prefetched (0: never); the register
   tiles of all rows, of which this is number `turn`, prefetch different lines of that tile.
   block: so many steps make a partial sum, and partial sums are added up (0: all steps make one sum). #}
{% macro accumulate(rows, columns, lanes, k, left_space, left_pointer, right_space, ahead=0, lines=1, turn="0", block=0) %}
{% for i in range(rows) %}
            {{ left_space }}const float* a{{ i }} = {{ left_pointer.replace('ROW', 'min(r + %d, row_count - 1)' % i) }};
{% endfor %}
{{ zeros("c", rows, columns, lanes) -}}
{% if ahead %}
            {{ right_space }}const float* next = {{ next_lines(k, columns, ahead, lines, turn) }};
{% endif %}
{% if block and ahead %}
            for (int begin = 0; begin < {{ k // ahead }}; begin += {{ block // ahead }}) {
{{ zeros("p", rows, columns, lanes) -}}
{{ steps("p", rows, columns, lanes, "begin", "min(begin + %d, %s)" % (block // ahead, k // ahead), right_space, ahead, lines) -}}
{{ added(rows, columns, lanes) -}}
            }
{% elif block %}
            for (int begin = 0; begin < {{ k }}; begin += {{ block }}) {
{{ zeros("p", rows, columns, lanes) -}}
{{ steps("p", rows, columns, lanes, "begin", "min(begin + %d, %s)" % (block, k), right_space, 0, 0) -}}
{{ added(rows, columns, lanes) -}}
            }
{% else %}
{{ steps("c", rows, columns, lanes, 0, k // ahead if ahead else k, right_space, ahead, lines) -}}
{% endif %}
{%- endmacro %}
{# The same over a right factor that is read where it lies: `text` adds its products. #}
{% macro accumulate_in_place(rows, columns, lanes, left_space, left_pointer, text) %}
{% for i in range(rows) %}
            {{ left_space }}const float* a{{ i }} = {{ left_pointer.replace('ROW', 'min(r + %d, row_count - 1)' % i) }};
{% endfor %}
{{ zeros("c", rows, columns, lanes) -}}
{{ text }}
{%- endmacro %}
{% macro zeros(name, rows, columns, lanes) %}
{% for i in range(rows) %}
            float{{ lanes }} {% for j in range(columns // lanes) %}{{ name }}{{ i }}_{{ j }} = 0.0f{{ ', ' if not loop.last }}{% endfor %};
{% endfor %}
{%- endmacro %}
{% macro added(rows, columns, lanes) %}
{% for i in range(rows) %}
            {% for j in range(columns // lanes) %}c{{ i }}_{{ j }} += p{{ i }}_{{ j }};{{ ' ' if not loop.last }}{% endfor %}

{% endfor %}
{% endmacro %}
{% macro steps(name, rows, columns, lanes, first, last, right_space, ahead, lines) %}
{{ loops(first, last, ahead, lines) -}}
{% for j in range(columns // lanes) %}
                const float{{ lanes }} b{{ j }} = *({{ right_space }}const smr_float{{ lanes }}*)(right + k * {{ columns }} + {{ j * lanes }});
{% endfor %}
{% for i in range(rows) %}
{% for j in range(columns // lanes) %}
                {{ name }}{{ i }}_{{ j }} += a{{ i }}[k] * b{{ j }};
{% endfor %}
{% endfor %}
            }
{% if ahead > 1 %}
            }
{% endif %}
{%- endmacro %}
{# The loops over steps of k: `first` and `last` count requests of lines, or steps where there are none. #}
{% macro loops(first, last, ahead, lines) %}
{% if ahead > 1 %}
            for (int part = {{ first }}; part < {{ last }}; ++part) {
{{ prefetched("part", lines) -}}
#pragma unroll
            for (int k = part * {{ ahead }}; k < (part + 1) * {{ ahead }}; ++k) {
{% else %}
            for (int k = {{ first }}; k < {{ last }}; ++k) {
{{ prefetched("k", lines if ahead else 0) -}}
{% endif %}
{%- endmacro %}
{# Where the lines of the next tile begin that a register tile prefetches. #}
{% macro next_lines(k, columns, ahead, lines, turn) %}
{% set parts = (ahead * columns + 16 * lines - 1) // (16 * lines) %}
right + {{ k * columns }}{{ " + %s %% %d * %d" % (turn, parts, k // ahead * lines * 16) if parts > 1 }}
{%- endmacro %}
{% macro prefetched(request, lines) %}
{% for line in range(lines) %}
                SMR_PREFETCH_LATER(next + {{ request }} * {{ 16 * lines }}{{ " + %d" % (16 * line) if line }});
{% endfor %}
{%- endmacro %}
