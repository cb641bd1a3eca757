{% from "entry.cl" import entry %}
{% macro at(place) %}state + {{ place * line }}{% endmacro %}
{% macro load(place, order) %}atomic_load_explicit({{ at(place) }}, memory_order_{{ order }}, memory_scope_device){% endmacro %}
{% macro store(place, value, order) %}atomic_store_explicit({{ at(place) }}, {{ value }}, memory_order_{{ order }}, memory_scope_device){% endmacro %}
{% macro count(place, order) %}atomic_fetch_add_explicit({{ at(place) }}, 1, memory_order_{{ order }}, memory_scope_device){% endmacro %}
{% macro waiting(turn) %}
{% if turn.waits %}
                for (int polls = 0; !stuck; ++polls) {
                    if ({% for place, number in turn.waits %}{{ load(place, "acquire") }} >= {{ number }}{{ " && " if not loop.last }}{% endfor %}) break;
                    stuck = polls == {{ patience }};
                }
                if (stuck) break;
{% endif %}
{% endmacro %}
{% for text in functions %}
{{ text }}
{% endfor %}
// A persistent kernel with task counters: kernels of which some need what others make, in one launch. Each work-group goes
// through the kernels in their order and takes one work-item after the other, as soon as all is done that the work-item
// needs. No work-group holds a work-item that it has not begun. A work-group that has waited for too many polls, because
// another one was preempted, leaves the rest to the others, unless it is the last one. The last work-group to leave resets
// all counters.
{{ entry(inside, false, parameters, tables, shared, numbered=false) }}
    volatile __global atomic_int* state = (volatile __global atomic_int*){{ state }};
    int active = 0;
    if ({{ load(places.closed, "relaxed") }} == 0) {
        active = 1;
        {{ count(places.active, "relaxed") }};
    }
    while (active != 0) {
        int stuck = 0;
{% for turn in turns %}
{% if turn.in_turn %}
        if (!stuck && {{ load(turn.taken, "relaxed") }} < {{ turn.items }} && atomic_exchange_explicit({{ at(turn.owned) }}, 1, memory_order_acquire, memory_scope_device) == 0) {
            for (;;) {
                const int item = {{ load(turn.taken, "acquire") }};
                if (item >= {{ turn.items }}) break;
{{ waiting(turn) -}}
                {{ turn.call.name }}({{ turn.call.arguments }}, item);
                {{ store(turn.taken, "item + 1", "release") }};
            }
            {{ store(turn.owned, 0, "release") }};
        }
{% else %}
        if (!stuck) {
            while ({{ load(turn.taken, "relaxed") }} < {{ turn.items }}) {
{{ waiting(turn) -}}
                const int item = {{ count(turn.taken, "relaxed") }};
                if (item >= {{ turn.items }}) break;
                {{ turn.call.name }}({{ turn.call.arguments }}, item);
                {{ count(turn.done, "release") }};
            }
        }
{% endif %}
{% endfor %}
        if (!stuck{% for turn in turns if turn.in_turn %} && {{ load(turn.taken, "relaxed") }} >= {{ turn.items }}{% endfor %}) break;
        active = {{ load(places.active, "relaxed") }};
        while (active > 1 && !atomic_compare_exchange_strong_explicit({{ at(places.active) }}, &active, active - 1, memory_order_relaxed, memory_order_relaxed, memory_scope_device)) {}
        if (active > 1) {
            if (stuck) {{ store(places.closed, 1, "relaxed") }};
            active = 0;
        }
    }
    if (atomic_fetch_add_explicit({{ at(places.left) }}, 1, memory_order_acq_rel, memory_scope_device) == (int)get_num_groups(0) - 1) {
        for (int i = 0; i < {{ places.all }}; ++i) atomic_store_explicit(state + i * {{ line }}, 0, memory_order_relaxed, memory_scope_device);
    }
}
