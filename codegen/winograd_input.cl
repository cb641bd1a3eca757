{% from "winograd_transform.cl" import transform %}
for (int u = 0; u < {{ points }}; ++u) {
{% for v in range(points) %}
    const float8 d{{ v }} = half_done[u * {{ points }} + {{ v }}];
{% endfor %}
    {{ transform(matrix, "d", "*(smr_float8*)(%s + (u * %d + ROW) * %d)"|format(target, points, stride))|indent(4) }}
}
