{% from "winograd_transform.cl" import transform %}
{{ transform(matrix, operands, target) -}}
