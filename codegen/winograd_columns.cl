{% from "winograd_transform.cl" import transform %}
{% for value in values %}
const float{{ lanes }} d{{ loop.index0 }} = {{ value }};
{% endfor %}
{{ transform(matrix, "d", "half_done[ROW * %d + %s]"|format(points, place)) -}}
