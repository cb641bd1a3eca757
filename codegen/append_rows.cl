// New rows of a cache, behind those that it has: a work-item copies an element of each part. `sequences` of them, from
// `first` on, have as many rows there and get theirs at once.
__kernel void smr_append(
{% for part in parts %}
    __global const {{ type }}* restrict row{{ loop.index0 }}, __global {{ type }}* restrict cache{{ loop.index0 }},
{% endfor %}
    const int place, const int first, const int sequences) {
    const int i = (int)get_global_id(0);
{% for part in parts %}
    if (i < {{ part.own }} * sequences) cache{{ loop.index0 }}[(size_t)place * {{ part.row }} + first * {{ part.own }} + i] = row{{ loop.index0 }}[first * {{ part.own }} + i];
{% endfor %}
}
