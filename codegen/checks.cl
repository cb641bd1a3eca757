{# Functions of debug builds, whose kernels check each access to device memory. The log holds `record` integers for each
   tensor: how many accesses were outside of the tensor, and a description of the first of them. #}
#ifndef SMR_CHECKS
#define SMR_CHECKS
static void smr_note(__global int* log, int tensor, int write, int a, int b, int bytes, int image) {
    __global int* note = log + tensor * {{ record }};
    if (atomic_inc(note) != 0) return;
    note[1] = write; note[2] = a; note[3] = b; note[4] = bytes; note[5] = image;
    note[6] = (int)get_global_id(0); note[7] = (int)get_global_id(1); note[8] = (int)get_global_id(2);
}
// The index of an access; of one outside of the tensor, which is noted, the index of the tensor's first element instead.
// `before`: bytes from the beginning of the tensor to the pointer from which the index counts.
// Conditions are joined by `&`: each `&&` is a jump, and in a kernel with many of them NVIDIA's compiler (13.0) runs out of
// convergence barriers and spills one to a register where only some work-items of a warp are (BMOV in the subroutine of a
// division); the warp then stays apart, and `ldmatrix` gives garbage.
static long smr_at(long e, long before, int size, int count, long limit, int tensor, int write, __global int* log) {
    const long first = before + e * size;
    if ((first >= 0) & (first + (long)count * size <= limit)) return e;
    smr_note(log, tensor, write, (int)(first & 0xffffffffL), (int)(first >> 32), count * size, 0);
    return -before / size;
}
#ifdef __IMAGE_SUPPORT__
static int2 smr_texel(int2 at, int width, int height, int tensor, int write, __global int* log) {
    if ((at.x >= 0) & (at.y >= 0) & (at.x < width) & (at.y < height)) return at;
    smr_note(log, tensor, write, at.x, at.y, 0, 1);
    return (int2)(0, 0);
}
#endif
#define SMR_AT(p, base, e, count, limit, tensor, write) ((p) + smr_at((long)(e), (__global const char*)(p) - \
    (__global const char*)(base), (int)sizeof(*(p)), count, limit, tensor, write, smr_log))
#endif
