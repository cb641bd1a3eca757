{% from "winograd_transform.cl" import transform %}
{% from "magnitudes.cl" import note %}
{% for value in values %}
const float{{ lanes }} d{{ loop.index0 }} = {{ value }};
{{ note("seen", "d%d" % loop.index0, lanes) }}
{% endfor %}
{{ transform(matrix, "d", "half_done[ROW * %d + %s]"|format(points, place)) -}}
