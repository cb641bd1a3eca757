{# Where the elements of fragments lie, as C text: `lane` numbers the work-items of the sub-group. A fragment's row and
   column are those of the lane's first element; `offset` leads from there to another element. #}
{% macro place(fragment, number) -%}
{% set found = namespace(before=1, parts=[]) %}
{%- for digit in fragment.lanes %}
{%- if digit[number] %}{% set found.parts = found.parts + ["lane / %d %% %d * %d" % (found.before, digit.extent, digit[number])] %}{% endif %}
{%- set found.before = found.before * digit.extent %}
{%- endfor %}
{{ found.parts | join(" + ") or "0" }}
{%- endmacro %}
{% macro row(fragment) -%}{{ place(fragment, 1) }}{%- endmacro %}
{% macro column(fragment) -%}{{ place(fragment, 2) }}{%- endmacro %}
{# `turned`: the matrix lies in memory with its columns as rows. #}
{% macro offset(fragment, element, stride, turned=false) -%}
{% set at = fragment.place(0, element) -%}
{{ at[1] if turned else at[0] }} * {{ stride }} + {{ at[0] if turned else at[1] }}
{%- endmacro %}
