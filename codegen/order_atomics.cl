// How work-groups of one launch wait for each other by OpenCL C's atomic operations (OpenCL C 3.0, section 6.15.12). What a
// work-group has written is there for those that see its release by an acquire; the barriers around both pass that on to
// all work-items of the two work-groups.
#undef SMR_APART
#define SMR_APART
#define SMR_COUNTER(AT) ((volatile __global atomic_int*)(AT))
static inline int smr_order_take(volatile __global int* at) {
    return atomic_fetch_add_explicit(SMR_COUNTER(at), 1, memory_order_relaxed, memory_scope_device);
}
static inline int smr_order_leave(volatile __global int* at) {
    return atomic_fetch_add_explicit(SMR_COUNTER(at), 1, memory_order_acq_rel, memory_scope_device);
}
static inline int smr_order_look(volatile __global int* at) {
    return atomic_load_explicit(SMR_COUNTER(at), memory_order_relaxed, memory_scope_device);
}
static inline int smr_order_see(volatile __global int* at) {
    return atomic_load_explicit(SMR_COUNTER(at), memory_order_acquire, memory_scope_device);
}
static inline void smr_order_done(volatile __global int* at, int tasks) {
    atomic_fetch_add_explicit(SMR_COUNTER(at), tasks, memory_order_release, memory_scope_device);
}
static inline void smr_order_set(volatile __global int* at, int value) {
    atomic_store_explicit(SMR_COUNTER(at), value, memory_order_relaxed, memory_scope_device);
}
