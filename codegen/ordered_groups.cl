{% from "entry.cl" import entry, not_negative, local_id %}
{{ order }}
{% for text in functions %}
{{ text }}
{% endfor %}
// A persistent kernel of which work-groups take tasks in order: the work-groups of the first kernel, then those of the next.
// A task waits until all tasks are done of the kernels that its own needs. Those were taken before it, by work-groups that
// run, and the first task that is not done waits for nothing: so the launch comes to an end on any number of work-groups,
// also where they run one after the other. A work-group says of each task that it is done before it takes the next one.
// The last one to leave sets all counters to zero. A work-group that has looked {{ polls }} times in vain notes its kernel,
// and leaves. Before a task waits, it asks for what no other task writes: its first tiles of constants.
// The note is copied to where the host reads outputs: a copy of its own would take longer than some kernels.
__constant int smr_order_first[{{ first|length }}] = { {{ first|join(', ') }} }; // tasks before each kernel's own
__constant int smr_order_waits[{{ waits|length }}] = { {{ waits|join(', ') }} }; // waits before each kernel's own
__constant int smr_order_awaited[{{ [1, awaited|length]|max }}] = { {{ (awaited or [0])|join(', ') }} }; // kernels that each wait is for
{{ entry(inside, false, parameters, tables, shared, none, threads, numbered=false) }}
    volatile __global int* state = (volatile __global int*){{ state }};
    __local float smr_local[{{ local_floats }}] __attribute__((aligned(16)));
    __local int smr_task[2];
    const int thread = {{ local_id(threads) }};
    int member = -1;
    if (thread == 0) smr_task[1] = 0;
    if (thread == {{ threads - 1 }}) smr_task[0] = smr_order_take(state);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (;;) {
        const int task = smr_task[0];
        const int before = member;
        while (member < {{ calls|length }} && task >= smr_order_first[member + 1]) ++member;
        if (member == {{ calls|length }}) break;
        const int group = {{ not_negative("task - smr_order_first[member]") }};
        const int item = group * {{ threads }} + thread;
{% if calls|selectattr("fetch")|first is defined %}
        switch (member) {
{% for call in calls %}
{% if call.fetch %}
        case {{ loop.index0 }}: {{ call.fetch }}({{ call.arguments }}, item, group, smr_local + {{ call.local }}); break;
{% endif %}
{% endfor %}
        default: break;
        }
{% endif %}
        if (member != before) {
            for (int wait = smr_order_waits[member] + thread; wait < smr_order_waits[member + 1]; wait += {{ threads }}) {
                const int other = smr_order_awaited[wait];
                const int tasks = smr_order_first[other + 1] - smr_order_first[other];
                volatile __global int* at = state + ({{ places.done }} + other) * {{ line }};
                for (long polls = 0; smr_order_see(at) < tasks; ++polls) {
                    if (polls == {{ polls }}L) {
                        smr_order_set(state + {{ places.failed * line }}, member + 1);
                        smr_task[1] = 1;
                        break;
                    }
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            if (smr_task[1] != 0) break;
        }
        switch (member) {
{% for call in calls %}
        case {{ loop.index0 }}: {{ call.name }}({{ call.arguments }}, item, group, smr_local + {{ call.local }}); break;
{% endfor %}
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        // two sub-groups, so that what waits for this task does not wait for the question for the next one as well
        if (thread == 0) smr_order_done(state + ({{ places.done }} + member) * {{ line }}, 1);
        if (thread == {{ threads - 1 }}) smr_task[0] = smr_order_take(state);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (thread == 0 && smr_order_leave(state + {{ places.left * line }}) == (int)get_num_groups(0) - 1) {
        volatile __global int* note = {{ note }};
        smr_order_set(note, smr_order_look(state + {{ places.failed * line }}));
        for (int place = 0; place < {{ places.all }}; ++place) smr_order_set(state + place * {{ line }}, 0);
    }
}
