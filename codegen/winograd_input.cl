{% from "winograd_transform.cl" import transform %}
for (int u = 0; u < {{ points }}; ++u) {
{% for v in range(points) %}
    const float{{ lanes }} d{{ v }} = half_done[u * {{ points }} + {{ v }}];
{% endfor %}
    {{ transform(matrix, "d", "*(smr_float%d*)(%s + (u * %d + ROW) * %d)"|format(lanes, target, points, stride))|indent(4) }}
}
