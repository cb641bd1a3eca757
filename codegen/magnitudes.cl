{# Magnitudes of data as integers, which are in the same order: that of NaN is above infinity. No comparison loses a NaN. #}
{# Take the magnitudes of a vector into the greatest ones of all lanes. #}
{% macro note(seen, value, lanes) %}
{ const int{{ lanes }} bits = as_int{{ lanes }}({{ value }}) & 0x7fffffff; {{ seen }} = bits > {{ seen }} ? bits : {{ seen }}; }
{%- endmacro %}
