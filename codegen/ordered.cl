{% from "entry.cl" import entry %}
{% macro at(counter) %}state + {{ counter * line }}{% endmacro %}
{% macro computed(turn, counter) %}
{% for other, number in turn.waits %}
            while (atomic_load_explicit({{ at(other) }}, memory_order_acquire, memory_scope_device) < {{ number }}) {}
{% endfor %}
            {{ turn.call.name }}({{ turn.call.arguments }}, item);
            atomic_fetch_add_explicit({{ at(counter) }}, 1, memory_order_release, memory_scope_device);
{% endmacro %}
{% for text in functions %}
{{ text }}
{% endfor %}
// Kernels of which some need what others make, in one launch. A work-group takes the work-items one by one, in an order in
// which each comes behind all that it needs: what it waits for was taken before, by a work-group that runs. A counter for each
// kernel says how many of its work-items are done. The last work-group to come away empty sets all counters back.
{{ entry(inside, parameters, tables, shared, numbered=false) }}
    volatile __global atomic_int* state = (volatile __global atomic_int*){{ state }};
    for (;;) {
        const int ticket = atomic_fetch_add_explicit({{ at(0) }}, 1, memory_order_relaxed, memory_scope_device);
        if (ticket >= {{ tickets }}) {
            if (ticket == {{ tickets - 1 }} + (int)get_num_groups(0)) {
                for (int i = 0; i <= {{ turns|length }}; ++i)
                    atomic_store_explicit(state + i * {{ line }}, 0, memory_order_relaxed, memory_scope_device);
            }
            return;
        }
{% for turn in turns %}
        {{ "else " if not loop.first }}if (ticket < {{ turn.call.last }}) {
{% if turn.in_turn %}
            for (int item = 0; item < {{ turn.items }}; ++item) {
{{ computed(turn, loop.index) }}
            }
{% else %}
            const int item = ticket - {{ turn.call.first }};
{{ computed(turn, loop.index) }}
{% endif %}
        }
{% endfor %}
    }
}
