#define _GNU_SOURCE
#include "processor.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { RECORD_BYTES = 2048, MOST_PARTS = 4096, FLAGS_BYTES = 16384 };

/* The flags of /proc/cpuinfo that each level of x86-64 instructions adds to the one below it (x86-64 psABI, 3.1.1). */
static const char *const V2[] = {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3", NULL};
static const char *const V3[] = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave", NULL};
static const char *const V4[] = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", NULL};
/* What the name `icelake-server` adds to V4 for LLVM. */
static const char *const BYTES[] = {"avx512ifma", "avx512vbmi", "avx512_vbmi2", "avx512_vnni", "avx512_bitalg",
                                    "avx512_vpopcntdq", "aes", "gfni", "pclmulqdq", "sha_ni", "vaes", "vpclmulqdq",
                                    "adx", "clflushopt", "clwb", "rdpid", NULL};

#if defined(__linux__) && defined(__x86_64__)
/* ARCH_REQ_XCOMP_PERM, and the state that it is asked for (https://docs.kernel.org/arch/x86/xstate.html). */
enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
static const char *const BYTE_UNIT[] = {"amx_tile", "amx_int8", NULL};
#endif
static bool byte_unit;

typedef struct part {
    uintptr_t start, end;
} part;

/* The readable parts of this process's memory, so that looking at what may be no pointer is safe. */
typedef struct memory_map {
    part parts[MOST_PARTS];
    size_t count;
} memory_map;

static bool has_flag(const char *flags, const char *flag) {
    size_t length = strlen(flag);
    for (const char *at = strstr(flags, flag); at != NULL; at = strstr(at + 1, flag))
        if (at[-1] == ' ' && (at[length] == ' ' || at[length] == '\n' || !at[length]))
            return true;
    return false;
}

static bool has_all(const char *flags, const char *const *wanted) {
    for (; *wanted != NULL; ++wanted)
        if (!has_flag(flags, *wanted))
            return false;
    return true;
}

/* Reads the flags of the first processor; false where the system does not list them. */
static bool read_flags(char *line, int bytes) {
    FILE *file = fopen("/proc/cpuinfo", "re");
    bool found = false;
    while (file != NULL && !found && fgets(line, bytes, file) != NULL)
        found = strncmp(line, "flags", 5) == 0;
    if (file != NULL)
        fclose(file);
    return found;
}

static const char *level(void) {
    char flags[FLAGS_BYTES];
    if (!read_flags(flags, sizeof flags))
        return NULL;
    if (!has_all(flags, V2))
        return "x86-64";
    if (!has_all(flags, V3))
        return "x86-64-v2";
    if (!has_all(flags, V4))
        return "x86-64-v3";
    return has_all(flags, BYTES) ? "icelake-server" : "x86-64-v4";
}

static void ask_for_byte_unit(void) {
#if defined(__linux__) && defined(__x86_64__)
    char flags[FLAGS_BYTES];
    byte_unit = read_flags(flags, sizeof flags) && has_all(flags, BYTE_UNIT) &&
                syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#endif
}

bool processor_has_byte_unit(void) {
    static pthread_once_t asked = PTHREAD_ONCE_INIT;
    pthread_once(&asked, ask_for_byte_unit);
    return byte_unit;
}

static bool read_map(memory_map *map) {
    char line[512];
    FILE *file = fopen("/proc/self/maps", "re");
    map->count = 0;
    while (file != NULL && map->count < MOST_PARTS && fgets(line, sizeof line, file) != NULL) {
        unsigned long long start, end;
        char mode[8];
        if (sscanf(line, "%llx-%llx %7s", &start, &end, mode) == 3 && mode[0] == 'r')
            map->parts[map->count++] = (part){(uintptr_t)start, (uintptr_t)end};
    }
    if (file != NULL)
        fclose(file);
    return map->count != 0;
}

/* How many bytes can be read at an address. */
static size_t readable(const memory_map *map, uintptr_t address) {
    for (size_t i = 0; i < map->count; ++i)
        if (address >= map->parts[i].start && address < map->parts[i].end)
            return map->parts[i].end - address;
    return 0;
}

static bool begins_with(const memory_map *map, uintptr_t address, const char *text, size_t bytes) {
    return readable(map, address) >= bytes && memcmp((const void *)address, text, bytes) == 0;
}

/* Where the pointer to a name that is to be replaced stands: behind the pointer to a triple of this system.  LLVM 14
   calls all processors of AMD's family 25 `znver3`, which has no AVX-512: those of the fourth generation, too. */
static uintptr_t *place_of_name(const memory_map *map, uintptr_t record, bool wide) {
    for (size_t at = 0; at < RECORD_BYTES; at += sizeof(uintptr_t)) {
        uintptr_t *place = (uintptr_t *)(record + at);
        if (readable(map, record + at) < 2 * sizeof *place)
            return NULL;
        bool replaced = begins_with(map, place[1], "generic", 8) || (wide && begins_with(map, place[1], "znver3", 7));
        if (replaced && begins_with(map, place[0], "x86_64-", 7))
            return place + 1;
    }
    return NULL;
}

void processor_name(cl_device handle) {
    memory_map *map = malloc(sizeof *map);
    const char *name = level();
    if (map != NULL && name != NULL && read_map(map)) {
        bool wide = strcmp(name, "x86-64-v4") == 0 || strcmp(name, "icelake-server") == 0;
        uintptr_t *place = place_of_name(map, (uintptr_t)handle, wide);
        if (place != NULL)
            *place = (uintptr_t)name;
    }
    free(map);
}
