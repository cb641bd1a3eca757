{# The matrix units of compute capability 9.0, which a group of four warps asks for together: both factors are read from
   local memory, and products run while the warps go on (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").
   Their instructions are behind `//@`: the driver compiles OpenCL C for another target, and the runtime takes the mark
   away from its PTX (smartmem_rules: ptx_target.py).
   u: the matrix block; f: its fragments by name; s: the sizes (GroupTile). #}
{% from "matrix_ptx_memory.cl" import kept, stored, copied %}
{% from "matrix_swizzle.cl" import places %}
{% set n = u.name %}
{% set w = s.warp_columns %}
{% set count = w // u.columns %}
{% set type = {"float16": "f16", "bfloat16": "bf16"}[u.factors] %}
#ifndef SMR_TARGET_IS_SET
#error "these kernels are for the PTX target {{ u.target }}, which this runtime does not set"
#endif
#ifndef SMR_UNIT_{{ n }}
#define SMR_UNIT_{{ n }}
typedef ushort __attribute__((may_alias)) {{ n }}_element; // sums take the place of tiles in local memory
typedef float4 {{ n }}_sums;
#define {{ n }}_no_sums (({{ n }}_sums)(0))
{{ places(u) }}
static inline __local {{ n }}_element* {{ n }}_aligned(__local float* memory) {
    return (__local {{ n }}_element*)(memory + (-(uint)(size_t)memory & 1023) / 4);
}
// A matrix in local memory as the instructions name it; `leading` is in units of 16 bytes.
static inline ulong {{ n }}_matrix(__local const {{ n }}_element* tile, uint leading) {
    return 1ul << 62 | 64ul << 32 | (ulong)leading << 16 | (ulong)((uint)(size_t)tile >> 4);
}
static inline ulong {{ n }}_right_matrix(__local const {{ n }}_element* tile, int k, int step, int across) {
    return across ? {{ n }}_matrix(tile, step * 8) + k * 8 : {{ n }}_matrix(tile, 1) + k / {{ 16 // u.element_bytes }};
}
{{ kept(u) }}
{{ stored(u, f) }}
{{ copied(u) }}
// What work-items have written to local memory is there for the unit behind the next barrier.
#define {{ n }}_written() asm volatile("fence.proxy.async.shared::cta;" : : : "memory")
#define {{ n }}_begin() asm volatile("//@ wgmma.fence.sync.aligned;" : : : "memory")
#define {{ n }}_end() asm volatile("//@ wgmma.commit_group.sync.aligned;" : : : "memory")
#define {{ n }}_running(COUNT) asm volatile("//@ wgmma.wait_group.sync.aligned " #COUNT ";" : : : "memory")
#endif
#ifndef SMR_UNIT_{{ n }}_{{ w }}
#define SMR_UNIT_{{ n }}_{{ w }}
#define {{ n }}_registers_{{ w }} {% for i in range(count) %}"+f"(c{{ i }}.s0), "+f"(c{{ i }}.s1), "+f"(c{{ i }}.s2), "+f"(c{{ i }}.s3){{ ", " if not loop.last }}{% endfor %}

#define {{ n }}_product_{{ w }}(ACROSS, A, B, K, STEP) \
    asm volatile("//@ {{ u.multiply }}.m{{ u.rows }}n{{ w }}k{{ u.depth }}.f32.{{ type }}.{{ type }} { {% for i in range(4 * count) %}%{{ i }}{{ "," if not loop.last }}{% endfor %}}, %{{ 4 * count }}, %{{ 4 * count + 1 }}, 1, 1, 1, 0, " #ACROSS ";" \
        : {{ n }}_registers_{{ w }} : "l"({{ n }}_matrix(A, 1) + (K) / {{ 16 // u.element_bytes }}), "l"({{ n }}_right_matrix(B, K, STEP, ACROSS)))
#define {{ n }}_complete_{{ w }}() asm volatile("//@ wgmma.wait_group.sync.aligned 0;" : {{ n }}_registers_{{ w }} : : "memory")
#endif
