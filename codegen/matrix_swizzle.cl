{# Where elements lie in tiles from which a matrix unit reads: rows of 128 bytes, in each of which the eight pieces of 16
   bytes change places by the row's number, so that eight rows' pieces at one place lie in different banks.
   u: the matrix block. #}
{% macro places(u) %}
{% set n = u.name %}
{% set chunk = 16 // u.element_bytes %}
// Elements of one place of the reduction side by side: `own` is a row.
static inline uint {{ n }}_at(uint own, uint k) {
    return own * {{ u.row }} + (k / {{ chunk }} ^ own % 8) * {{ chunk }} + k % {{ chunk }};
}
// Columns side by side, {{ u.row }} in a row; the rows of `step` places of the reduction lie together.
static inline uint {{ n }}_across(uint k, uint own, uint step) {
    return (own / {{ u.row }} * step + k) * {{ u.row }} + (own % {{ u.row }} / {{ chunk }} ^ k % 8) * {{ chunk }} + own % {{ chunk }};
}
{%- endmacro %}
