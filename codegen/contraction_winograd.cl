{% from "entry.cl" import entry %}
{% from "magnitudes.cl" import note %}
{% from "register_block.cl" import accumulate %}
{% from "winograd_transform.cl" import transform %}
{% macro products(first, last, rows, part, turn) %}
            for (int r = {{ first }}; r < {{ last }}; r += {{ rows }}) {
{{ accumulate(rows, columns, lanes, k, "", "transformed + (point * %d + ROW) * %d"|format(most_tiles, k), part.space, part.ahead, part.ahead_lines, turn, block) }}
{% for i in range(rows) %}
                if (r + {{ i }} < row_count) {
{% for j in range(columns // lanes) %}
                    *(smr_float{{ lanes }}*)(sums + (point * {{ most_tiles }} + r + {{ i }}) * {{ columns }} + {{ j * lanes }}) = c{{ i }}_{{ j }};
{% endfor %}
                }
{% endfor %}
            }
{% endmacro %}
// Winograd's minimal filtering, for convolutions with windows of {{ taps }} x {{ taps }} and stride 1 on CPUs:
// {{ points * points }} products for each channel give a tile of {{ outputs }} x {{ outputs }} outputs. A work-item owns whole rows of tiles
// and a range of columns.
//   1. The tiles of the left factor are transformed (B^T d B), a vector of channels at a time. Where a tile has a large
//      element, or one that is no number, the work-item looks which of its outputs have the rounding of that element
//      although they do not read it.
//   2. The right factor was transformed when the plan was made. At each of the {{ points * points }} points the tiles are the
//      rows of a product, whose sums are accumulated in register tiles of {{ rows }} x {{ columns }}.
//   3. The sums are transformed back (A^T m A). The outputs of which step 1 says so are summed directly instead, from
//      the right factor as it was. The epilogue writes the rows that lie inside the image.

{{ entry(inside, in_group, parameters, tables, shared, vector_bits=vector_bits) }}
    const int column_block = item % {{ column_blocks }};
    const int row_block = item / {{ column_blocks }} % {{ row_blocks }};
    const int {{ batch }} = item / {{ column_blocks * row_blocks }};
    const int first_row = row_block * {{ block_rows }};
    const int first_strip = first_row / {{ outputs * width }};
    const int row_count = (min({{ block_rows }}, {{ m }} - first_row) + {{ outputs * width - 1 }}) / {{ outputs * width }} * {{ across }};
    float transformed[{{ points * points * most_tiles * k }}];
    int direct_sums[{{ most_tiles }}]; // outputs of a tile that are summed directly, and which these are where there are any
    uchar is_direct[{{ most_tiles * outputs * outputs }}];
    for (int t = 0; t < row_count; ++t) {
        const int {{ strip }} = first_strip + t / {{ across }};
        const int {{ place }} = t % {{ across }};
        int{{ channels }} seen = 0;
{{ body }}
        direct_sums[t] = 0;
        if (smr_seldom(any(seen > as_int({{ data.ordinary }}f)))) {
            float patch[{{ points * points * k }}];
{{ patch }}
            int greatest[{{ points * points }}];
            for (int i = 0; i < {{ points * points }}; ++i) {
                int{{ channels }} most = 0;
                for (int c = 0; c < {{ k }}; c += {{ channels }}) {
                    {{ note("most", "*(const smr_float%d*)(patch + i * %d + c)"|format(channels, k), channels) }}
                }
                int of_place = most.s0;
{% for lane in range(1, channels) %}
                of_place = max(of_place, most.s{{ "%x" % lane }});
{% endfor %}
                greatest[i] = of_place;
            }
            int most = greatest[0];
            for (int i = 1; i < {{ points * points }}; ++i) most = max(most, greatest[i]);
            for (int i = 0; i < {{ outputs * outputs }}; ++i) {
                const int* window = greatest + i / {{ outputs }} * {{ points }} + i % {{ outputs }};
                int own = window[0];
                for (int j = 1; j < {{ taps * taps }}; ++j) own = max(own, window[j / {{ taps }} * {{ points }} + j % {{ taps }}]);
                const bool filtered = as_float(most) <= {{ data.largest }}f && as_float(own) >= as_float(most) * {{ data.window_part }}f;
                is_direct[t * {{ outputs * outputs }} + i] = !filtered;
                direct_sums[t] += !filtered;
            }
        }
    }
    const int first_tile = column_block * {{ tiles_per_block }};
    const int last_tile = first_tile + {{ tiles_per_block }};
    float sums[{{ points * points * most_tiles * columns }}];
{% for part in parts %}
    for (int tile = max(first_tile - {{ part.first }}, 0); tile < min(last_tile - {{ part.first }}, {{ part.tiles }}); ++tile) {
        {{ part.pointer.replace("right =", "weights =") }}
        for (int point = 0; point < {{ points * points }}; ++point) {
            {{ part.space }}const float* right = weights + point * {{ k * columns }};
{{ products(0, "row_count" if not tail else "min(row_count, %d)" % (most_tiles - tail), rows, part, "r / %d" % rows) -}}
{% if tail %}
{{ products(most_tiles - tail, "row_count", tail, part, (most_tiles - tail) // rows) -}}
{% endif %}
        }
        for (int t = 0; t < row_count; ++t) {
            float{{ lanes }} result[{{ outputs * outputs * columns // lanes }}];
            for (int j = 0; j < {{ columns // lanes }}; ++j) {
                float{{ lanes }} half_done[{{ outputs * points }}];
                const float* sum = sums + t * {{ columns }} + j * {{ lanes }};
                for (int v = 0; v < {{ points }}; ++v) {
{% for u in range(points) %}
                    const float{{ lanes }} m{{ u }} = *(const smr_float{{ lanes }}*)(sum + ({{ u * points }} + v) * {{ most_tiles * columns }});
{% endfor %}
                    {{ transform(output, "m", "half_done[ROW * %d + v]"|format(points))|indent(20) }}
                }
                for (int i = 0; i < {{ outputs }}; ++i) {
{% for v in range(points) %}
                    const float{{ lanes }} m{{ v }} = half_done[i * {{ points }} + {{ v }}];
{% endfor %}
                    {{ transform(output, "m", "result[(i * %d + ROW) * %d + j]"|format(outputs, columns // lanes))|indent(20) }}
                }
            }
            const int y = (first_strip + t / {{ across }}) * {{ outputs }}, x = t % {{ across }} * {{ outputs }};
            if (smr_seldom(direct_sums[t])) {
                const int {{ strip }} = first_strip + t / {{ across }};
                const int {{ place }} = t % {{ across }};
                float patch[{{ points * points * k }}];
{{ patch }}
                {{ part.direct_pointer }}
                for (int line = 0; line < {{ outputs }}; ++line) {
                    const uchar* wanted = is_direct + t * {{ outputs * outputs }} + line * {{ outputs }};
                    if (y + line < {{ height }} && ({% for i in range(outputs) %}{{ " || " if i }}wanted[{{ i }}]{% endfor %})) {
                        float{{ lanes }} direct[{{ outputs * columns // lanes }}];
                        for (int i = 0; i < {{ outputs * columns // lanes }}; ++i) direct[i] = 0.0f;
                        for (int tap = 0; tap < {{ taps * taps }}; ++tap) {
                            {{ part.space }}const float* right = taps + tap * {{ k * columns }};
                            const int r = 0, row_count = {{ outputs }};
{{ accumulate(outputs, columns, lanes, k, "", "patch + ((line + tap / %d) * %d + ROW + tap %% %d) * %d"|format(taps, points, taps, k), part.space, 0, 1, "0", block) }}
{% for i in range(outputs) %}
{% for j in range(columns // lanes) %}
                            direct[{{ i * (columns // lanes) + j }}] += c{{ i }}_{{ j }};
{% endfor %}
{% endfor %}
                        }
                        for (int i = 0; i < {{ outputs }}; ++i) {
                            if (wanted[i]) {
{% for j in range(columns // lanes) %}
                                result[(line * {{ outputs }} + i) * {{ columns // lanes }} + {{ j }}] = direct[i * {{ columns // lanes }} + {{ j }}];
{% endfor %}
                            }
                        }
                    }
                }
            }
            for (int i = 0; i < {{ outputs * outputs }}; ++i) {
                if (y + i / {{ outputs }} < {{ height }} && x + i % {{ outputs }} < {{ width }}) {
                    const int {{ row }} = (y + i / {{ outputs }}) * {{ width }} + x + i % {{ outputs }};
                    const float* accumulated = (const float*)(result + i * {{ columns // lanes }});
{{ part.epilogue }}
                }
            }
        }
    }
{% endfor %}
}
