{# A step of a Winograd transform: each row of a matrix times the variables NAME0, NAME1, ...; zeros are left out. #}
{% macro combination(row, name) %}
{%- set begun = namespace(yes=false) -%}
{%- for factor in row -%}
{%- if factor -%}
{{ " + " if begun.yes }}{{ name }}{{ loop.index0 }}{{ " * %sf"|format(factor|float) if factor != 1 }}
{%- set begun.yes = true -%}
{%- endif -%}
{%- endfor -%}
{% endmacro %}
{% macro transform(matrix, name, target) %}
{% for row in matrix %}
{{ target.replace("ROW", loop.index0|string) }} = {{ combination(row, name) }};
{% endfor %}
{%- endmacro %}
