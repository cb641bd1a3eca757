{% from "entry.cl" import entry, local_id %}
{% from "group_product.cl" import product, finished, each, met %}
{% from "matrix_product.cl" import unit_product, fetched_ahead %}
{# Which sums are a work-group's own, and which of them are those of a work-item. #}
{% macro places() %}
    const int thread = {{ local_id(s.threads) }};
    const int column_tile = group % {{ column_tiles }};
    const int first_row = group / {{ column_tiles }} % {{ row_tiles }} * {{ s.rows }};
    const int {{ batch }} = group / {{ column_tiles * row_tiles }}{% if splits > 1 %} / {{ splits }}{% endif %};
{% if splits > 1 %}
    const int split = group / {{ column_tiles * row_tiles }} % {{ splits }};
{% if (splits - 1) * turns_each < turns %}
    const int first_turn = split * {{ turns_each }};
    const int last_turn = min(first_turn + {{ turns_each }}, {{ turns }});
{% else %}
    // Some work-groups have no K step. What they prefetch for the first one is not used.
    const int first_turn = min(split * {{ turns_each }}, {{ turns - 1 }});
    const int last_turn = split * {{ turns_each }} < {{ turns }} ? min(first_turn + {{ turns_each }}, {{ turns }}) : first_turn;
{% endif %}
{% endif %}
    const int lane = thread % {{ s.lanes }};
    const int warp = thread / {{ s.lanes }} % {{ s.warps }};
    const int slice = thread / {{ s.lanes * s.warps }};
    const int warp_row = warp / {{ s.columns // s.warp_columns }} * {{ s.warp_rows }};
    const int warp_column = warp % {{ s.columns // s.warp_columns }} * {{ s.warp_columns }};
{% if u and u.exchange %}
    __local uchar* const smr_exchange = (__local uchar*)(memory + {{ s.exchange_place }});
{% endif %}
{%- endmacro %}
{# The place of a turn among the sums of the tile. #}
{% macro placed() %}
                    const int place = first_place + e * {{ s.threads }};
                    const int tile_row = place / {{ s.columns // 4 }};
{%- endmacro %}
{# The epilogue: several turns ask for what they read before the first of them writes. All of them have the same columns.
   A turn behind the last row computes the first turn's row again, so that nothing is asked for behind a condition, and
   does not write it. What it reads is the same work-item's: an output may take the place of what the epilogue reads. #}
{% macro overlapping() %}
    for (int first_place = thread; first_place < {{ s.rows * s.columns // 4 }}; first_place += {{ overlapped * s.threads }}) {
        const int first_of_turns = first_row + first_place / {{ s.columns // 4 }};
        const int tile_column = first_place % {{ s.columns // 4 }} * 4;
        {% if m % s.rows != 0 %}if (first_of_turns < {{ m }}) {% endif %}{
{% for part in parts %}
            {% if not loop.first %}else {% endif %}{% if parts|length > 1 %}if (column_tile < {{ part.last }}) {% endif %}{
                const int {{ part.block }} = (column_tile - {{ part.first }}) * {{ s.columns // 4 }} + tile_column / 4;
                {% if part.blocks * 4 % s.columns != 0 %}if ({{ part.block }} < {{ part.blocks }}) {% endif %}{
{% for declaration in part.kept %}
                {{ declaration }}
{% endfor %}
                #pragma unroll
                for (int e = 0; e < {{ overlapped }}; ++e) {
{{ placed() }}
{% if m % s.rows == 0 %}
                    const int {{ row }} = first_row + tile_row;
{% else %}
                    const int {{ row }} = first_row + tile_row < {{ m }} ? first_row + tile_row : first_of_turns;
{% endif %}
{% if splits > 1 %}
                    const float4 finished = *(__local const float4*)(memory + tile_row * {{ s.sum_stride }} + tile_column);
{% else %}
{{ finished(s) }}
{% endif %}
{{ part["values"] }}
                }
                #pragma unroll
                for (int e = 0; e < {{ overlapped }}; ++e) {
{{ placed() }}
                    const int {{ row }} = first_row + tile_row;
                    {% if m % s.rows != 0 %}if ({{ row }} < {{ m }}) {% endif %}{
{{ part.stores }}
                    }
                }
                }
            }
{% endfor %}
        }
    }
{%- endmacro %}
// Contractions for GPUs with local memory. A work-group owns {{ s.rows }} x {{ s.columns }} sums. Tiles of both factors, {{ s.step }} deep, lie in local
// memory; the next tiles are loaded while these are multiplied.
//   1. All work-items compute what the rows of the left factor need, a team for each row: the statistics of a normalisation,
//      or the scores of an attention and their softmax{% if held %}, in registers, where they become the left factor{% endif %}.
//   2. {{ s.slices }} slices of sub-groups of {{ s.lanes }} work-items share the depth of a tile (slice-K). A sub-group owns {{ s.warp_rows }} x {{ s.warp_columns }} sums.
//   3. The sums of several slices are added in local memory; those of one slice stay in registers. Every work-item then
//      runs the epilogue of some sums, four columns at a time.
{% if splits > 1 %}
// Split-K: {{ splits }} work-groups share the reduction of a tile. The last of them adds up the partial sums that all have stored.
{% endif %}
{% if splits > 1 %}
#ifndef SMR_MEETING
#define SMR_MEETING
#ifdef SMR_SHUFFLE_PTX
// Orders what the work-items before the barrier have written, and what those behind the next one read, for the device.
#define smr_meet()
static inline int smr_order_arrive(volatile __global int* at) {
    int before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(at) : "memory");
    return before;
}
#else
#define smr_meet() mem_fence(CLK_GLOBAL_MEM_FENCE)
#define smr_order_arrive(AT) atomic_inc(AT)
#endif
#endif
{% endif %}
{% if u %}
// The matrix unit {{ u.name }} multiplies the tiles.
{{ unit_texts }}
{% endif %}

{{ entry(inside, in_group, parameters, tables, shared, "group", s.threads) }}
{{ places() -}}
{{ prologue }}
{% if splits > 1 %}
{{ unit_product(s, u, left, right, "first_turn", "last_turn", turns_summed, fetches) if u else product(s, left, right, "first_turn", "last_turn", turns_summed) }}
    const int tile = {{ batch }} * {{ column_tiles * row_tiles }} + group % {{ column_tiles * row_tiles }};
    __global float* partial = {{ partials }} + tile * {{ splits * s.rows * s.columns }};
    for (int place = thread; place < {{ s.rows * s.columns // 4 }}; place += {{ s.threads }}) {
{{ finished(s) }}
        vstore4(finished, place, (__global float*)(partial + split * {{ s.rows * s.columns }}));
    }
    smr_meet();
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
    if (thread == 0) {
        arrived[0] = smr_order_arrive((volatile __global int*){{ arrivals }} + tile);
        if (arrived[0] == {{ splits - 1 }}) {{ arrivals }}[tile] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (arrived[0] == {{ splits - 1 }}) {
    smr_meet();
{% if not s.direct %}
{{ met(s, splits) }}
{% endif %}
{% elif held %}
{{ held }}
{% else %}
{{ unit_product(s, u, left, right, 0, turns, turns_summed, fetches) if u else product(s, left, right, 0, turns, turns_summed) }}
{% endif %}
{% if overlapped > 1 %}
{{ overlapping() }}
{% else %}
{{ each(s) }}
        const int {{ row }} = first_row + tile_row;
        if ({{ row }} < {{ m }}) {
{% if splits > 1 and not s.direct %}
        const float4 finished = *(__local const float4*)(memory + tile_row * {{ s.sum_stride }} + tile_column);
{% elif splits > 1 %}
        float4 finished = 0.0f;
        for (int part = 0; part < {{ splits }}; ++part) {
            volatile __global float4* sums = (volatile __global float4*)(partial + part * {{ s.rows * s.columns }});
            finished += sums[place];
        }
{% else %}
{{ finished(s) }}
{% endif %}
{% for part in parts %}
        {% if not loop.first %}else {% endif %}if (column_tile < {{ part.last }}) {
            const int {{ part.block }} = (column_tile - {{ part.first }}) * {{ s.columns // 4 }} + tile_column / 4;
            if ({{ part.block }} < {{ part.blocks }}) {
{{ part.epilogue }}
            }
        }
{% endfor %}
        }
    }
{% endif %}
{% if splits > 1 %}
    }
{% endif %}
}
{% if fetches %}
// What a work-group asks for before it waits for others: tiles of the right factor, which is constant.
{{ entry(inside, in_group, parameters, [], shared, "group", s.threads, name="smr_part_ahead") }}
{{ places() -}}
{% if splits > 1 %}
{{ fetched_ahead(s, u, right, "first_turn", "last_turn", turns_summed) }}
{% else %}
{{ fetched_ahead(s, u, right, 0, turns, turns_summed) }}
{% endif %}
}
{% endif %}
