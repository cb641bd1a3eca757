// Contractions for GPUs with local memory. A work-group owns {{ rows }} x {{ columns }} sums; tiles of both factors, {{ step }} deep, lie twice in
// local memory, so that the next ones arrive while the present ones are used.
//   1. statistics of the rows (normalisations), where the left factor needs them, computed once by all work-items;
//   2. {{ slices }} slices of sub-groups of 32 work-items share the depth of a tile; each sub-group owns {{ warp_rows }} x {{ warp_columns }} sums;
//   3. the sums of all slices meet in local memory, and every work-item finishes columns in fours.
// {% if matrix %}The products run on NVIDIA's matrix units: each factor is split into two parts of 11 bits, and three of the
// four products of parts are summed in single precision; what is lost is below 2^-20 of a product.{% endif %}

{% if matrix %}
#ifndef SMR_SPLIT
#define SMR_SPLIT
static inline uint smr_high(float x) {
    uint high;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(high) : "f"(x));
    return high;
}
static inline uint smr_low(float x, uint high) { return as_uint(x - as_float(high)); }
#define SMR_MMA(C, A, B0, B1)                                                                                     \
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 { %0,%1,%2,%3}, { %4,%5,%6,%7}, { %8,%9}, { %0,%1,%2,%3};" \
        : "+f"(C.s0), "+f"(C.s1), "+f"(C.s2), "+f"(C.s3)                                                          \
        : "r"(A.s0), "r"(A.s1), "r"(A.s2), "r"(A.s3), "r"(B0), "r"(B1))
#endif
{% endif %}

__kernel __attribute__((reqd_work_group_size({{ threads }}, 1, 1))) void smr_kernel(
    {{ parameters }}) {
{% for array in shared %}
    __local {{ array }} __attribute__((aligned(16)));
{% endfor %}
    __local float memory[{{ memory }}] __attribute__((aligned(16)));
{% for name, values in tables %}
    __constant int {{ name }}[{{ values|length }}] = { {{ values|join(', ') }} };
{% endfor %}
    const int thread = (int)get_local_id(0);
    const int group = (int)get_group_id(0);
    const int column_tile = group % {{ column_tiles }};
    const int first_row = group / {{ column_tiles }} % {{ row_tiles }} * {{ rows }};
    const int {{ batch }} = group / {{ column_tiles * row_tiles }};
    const int lane = thread % 32;
    const int warp = thread / 32 % {{ warps }};
    const int slice = thread / {{ 32 * warps }};
    const int warp_row = warp / {{ columns // warp_columns }} * {{ warp_rows }};
    const int warp_column = warp % {{ columns // warp_columns }} * {{ warp_columns }};
{{ prologue }}
{{ left.declaration }}
{{ right.declaration }}
{% for i in range(sums) %}
    float4 c{{ i }} = 0.0f;
{% endfor %}
    {
        const int step = 0;
{{ left.load }}
{{ right.load }}
    }
    for (int turn = 0; turn < {{ turns }}; ++turn) {
        __local float* left = memory + (turn & 1) * {{ tile }};
        __local float* right = left + {{ rows * left_stride }};
{{ left.keep }}
{{ right.keep }}
        barrier(CLK_LOCAL_MEM_FENCE);
        if (turn + 1 < {{ turns }}) {
            const int step = turn + 1;
{{ left.load }}
{{ right.load }}
        }
        const int depth = slice * {{ step // slices }};
{% if matrix %}
        #pragma unroll
        for (int k = 0; k < {{ step // slices }}; k += 8) {
            __local const float* a = left + (warp_row + lane / 4) * {{ left_stride }} + depth + k + lane % 4;
            __local const float* b = right + (depth + k + lane % 4) * {{ right_stride }} + warp_column + lane / 4;
{% for i in range(warp_rows // 16) %}
            const float4 a{{ i }} = (float4)(a[{{ 16 * i * left_stride }}], a[{{ (16 * i + 8) * left_stride }}], a[{{ 16 * i * left_stride + 4 }}], a[{{ (16 * i + 8) * left_stride + 4 }}]);
            const uint4 ah{{ i }} = (uint4)(smr_high(a{{ i }}.s0), smr_high(a{{ i }}.s1), smr_high(a{{ i }}.s2), smr_high(a{{ i }}.s3));
            const uint4 al{{ i }} = (uint4)(smr_low(a{{ i }}.s0, ah{{ i }}.s0), smr_low(a{{ i }}.s1, ah{{ i }}.s1), smr_low(a{{ i }}.s2, ah{{ i }}.s2), smr_low(a{{ i }}.s3, ah{{ i }}.s3));
{% endfor %}
{% for j in range(warp_columns // 8) %}
            {
                const float b0 = b[{{ 8 * j }}], b1 = b[{{ 8 * j + 4 * right_stride }}];
                const uint bh0 = smr_high(b0), bh1 = smr_high(b1);
                const uint bl0 = smr_low(b0, bh0), bl1 = smr_low(b1, bh1);
{% for i in range(warp_rows // 16) %}
                SMR_MMA(c{{ i * (warp_columns // 8) + j }}, al{{ i }}, bh0, bh1);
                SMR_MMA(c{{ i * (warp_columns // 8) + j }}, ah{{ i }}, bl0, bl1);
                SMR_MMA(c{{ i * (warp_columns // 8) + j }}, ah{{ i }}, bh0, bh1);
{% endfor %}
            }
{% endfor %}
        }
{% else %}
        __local const float* a = left + (warp_row + lane / 4) * {{ left_stride }} + depth;
        __local const float* b = right + depth * {{ right_stride }} + warp_column + lane % 4 * 4;
        #pragma unroll
        for (int k = 0; k < {{ step // slices }}; k += 4) {
{% for i in range(warp_rows // 8) %}
            const float4 a{{ i }} = *(__local const float4*)(a + {{ 8 * i * left_stride }} + k);
{% endfor %}
{% for s in range(4) %}
{% for j in range(warp_columns // 16) %}
            {
                const float4 b0 = *(__local const float4*)(b + (k + {{ s }}) * {{ right_stride }} + {{ 16 * j }});
{% for i in range(warp_rows // 8) %}
                c{{ i * (warp_columns // 16) + j }} += a{{ i }}.s{{ s }} * b0;
{% endfor %}
            }
{% endfor %}
{% endfor %}
        }
{% endif %}
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    {
        __local float* sums = memory + slice * {{ rows * sum_stride }};
{% if matrix %}
{% for i in range(warp_rows // 16) %}
{% for j in range(warp_columns // 8) %}
        *(__local float2*)(sums + (warp_row + {{ 16 * i }} + lane / 4) * {{ sum_stride }} + warp_column + {{ 8 * j }} + lane % 4 * 2) = c{{ i * (warp_columns // 8) + j }}.s01;
        *(__local float2*)(sums + (warp_row + {{ 16 * i + 8 }} + lane / 4) * {{ sum_stride }} + warp_column + {{ 8 * j }} + lane % 4 * 2) = c{{ i * (warp_columns // 8) + j }}.s23;
{% endfor %}
{% endfor %}
{% else %}
{% for i in range(warp_rows // 8) %}
{% for j in range(warp_columns // 16) %}
        *(__local float4*)(sums + (warp_row + lane / 4 + {{ 8 * i }}) * {{ sum_stride }} + warp_column + lane % 4 * 4 + {{ 16 * j }}) = c{{ i * (warp_columns // 16) + j }};
{% endfor %}
{% endfor %}
{% endif %}
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int place = thread; place < {{ rows * columns // 4 }}; place += {{ threads }}) {
        const int {{ row }} = first_row + place / {{ columns // 4 }};
        if ({{ row }} >= {{ m }}) break;
        __local const float* sums = memory + place / {{ columns // 4 }} * {{ sum_stride }} + place % {{ columns // 4 }} * 4;
        float4 finished = *(__local const float4*)sums;
{% for s in range(1, slices) %}
        finished += *(__local const float4*)(sums + {{ s * rows * sum_stride }});
{% endfor %}
{% for part in parts %}
        {% if not loop.first %}else {% endif %}if (column_tile < {{ part.last }}) {
            const int {{ part.block }} = (column_tile - {{ part.first }}) * {{ columns // 4 }} + place % {{ columns // 4 }};
            if ({{ part.block }} < {{ part.blocks }}) {
{{ part.epilogue }}
            }
        }
{% endfor %}
    }
}
