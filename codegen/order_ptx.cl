// How work-groups of one launch wait for each other on NVIDIA's GPUs (PTX ISA, "Memory Consistency Model"). What a work-group
// has written is there for those that see its `red.release` by `ld.acquire`; the barriers around both pass that on to all
// work-items of the two work-groups. `ld.acquire` empties the multiprocessor's first cache, so it is not what polls.
#undef SMR_APART
#define SMR_APART __attribute__((noinline))
static inline int smr_order_take(volatile __global int* at) {
    int before;
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(at) : "memory");
    return before;
}
static inline int smr_order_leave(volatile __global int* at) {
    int before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(at) : "memory");
    return before;
}
static inline int smr_order_look(volatile __global int* at) {
    int now;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(at) : "memory");
    return now;
}
static inline int smr_order_see(volatile __global int* at) {
    int now;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(at) : "memory");
    return now;
}
static inline void smr_order_done(volatile __global int* at, int tasks) {
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" : : "l"(at), "r"(tasks) : "memory");
}
static inline void smr_order_set(volatile __global int* at, int value) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" : : "l"(at), "r"(value) : "memory");
}
