{% from "register_block.cl" import loops, next_lines %}
{# The register tile of a contraction on a CPU, as in `register_block.cl`, over integers of 8 bits: rows of the left factor
   without a sign, columns of the right one with a sign, four steps of k in a word. With x = left + zero and y = right + zero
   of the two factors, the sum of left * right is that of x * y - left zero * (y - right zero) - right zero * x. Sums wrap
   as the definition's int32 does, so all of this is exact.
   words: of a row; rest: steps of the last word where that is not full.
   flip: whether the left factor has a sign, whose bit is turned over. #}
{% macro accumulate_bytes(rows, columns, lanes, words, rest, left_space, left_pointer, flip, part, ahead=0, turn="0") %}
{% for i in range(rows) %}
            {{ left_space }}const uchar* a{{ i }} = {{ left_pointer.replace('ROW', 'min(r + %d, row_count - 1)' % i) }};
{% endfor %}
{% for j in range(columns // lanes) %}
            const int{{ lanes }} sum{{ j }} = *({{ part.bytes_space }}const smr_int{{ lanes }}*)(right_sums + {{ j * lanes }});
{% endfor %}
{% for i in range(rows) %}
{% for j in range(columns // lanes) %}
            int{{ lanes }} c{{ i }}_{{ j }} = sum{{ j }} * left_zero;
{% endfor %}
{% endfor %}
{% if ahead %}
            {{ part.bytes_space }}const int* next = {{ next_lines(words, columns, ahead, part.ahead_lines, turn) }};
{% endif %}
{{ loops(0, words // ahead if ahead else words - 1 if rest else words, ahead, part.ahead_lines) -}}
{{ step(rows, columns, lanes, left_space, flip, part, 4) -}}
            }
{% if ahead > 1 %}
            }
{% endif %}
{% if rest %}
            {
                const int k = {{ words - 1 }};
{{ step(rows, columns, lanes, left_space, flip, part, rest) -}}
            }
{% endif %}
{% if part.bytes_zeros %}
{% for j in range(columns // lanes) %}
            const int{{ lanes }} zero{{ j }} = *({{ part.bytes_space }}const smr_int{{ lanes }}*)(right_zeros + {{ j * lanes }});
{% endfor %}
{% for i in range(rows) %}
{% for j in range(columns // lanes) %}
            c{{ i }}_{{ j }} -= zero{{ j }} * left_sums[min(r + {{ i }}, row_count - 1)];
{% endfor %}
{% endfor %}
{% endif %}
{%- endmacro %}
{% macro step(rows, columns, lanes, left_space, flip, part, count) %}
{% for j in range(columns // lanes) %}
                const int{{ lanes }} b{{ j }} = *({{ part.bytes_space }}const smr_int{{ lanes }}*)(right + k * {{ columns }} + {{ j * lanes }});
{% endfor %}
{% for i in range(rows) %}
{% if count == 4 %}
                const int w{{ i }} = as_int(*({{ left_space }}const smr_uchar4*)(a{{ i }} + 4 * k)){{ ' ^ (int)0x80808080' if flip }};
{% else %}
                const int w{{ i }} = as_int((uchar4)(a{{ i }}[4 * k], {{ 'a%d[4 * k + 1]' % i if count > 1 else '0' }}, {{ 'a%d[4 * k + 2]' % i if count > 2 else '0' }}, 0)){{ ' ^ (int)0x80808080' if flip }};
{% endif %}
{% for j in range(columns // lanes) %}
                c{{ i }}_{{ j }} = smr_dot{{ lanes }}(c{{ i }}_{{ j }}, w{{ i }}, b{{ j }});
{% endfor %}
{% endfor %}
{%- endmacro %}
