#define _GNU_SOURCE
#include "host_memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The number that a file holds alone, or behind a word at the beginning of a line; 0 where there is none. */
static uint64_t number_in(const char *path, const char *word) {
    char line[256];
    unsigned long long value = 0;
    FILE *file = fopen(path, "re");
    size_t length = strlen(word);
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, word, length) == 0 && sscanf(line + length, "%llu", &value) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return value;
}

static uint64_t of_system(void) {
    uint64_t kilobytes = number_in("/proc/meminfo", "MemAvailable:");
    return kilobytes ? (kilobytes + number_in("/proc/meminfo", "SwapFree:")) * 1024 : UINT64_MAX;
}

static uint64_t of_control_group(void) {
    static const char STATISTICS[] = "/sys/fs/cgroup/memory.stat";
    uint64_t limit = number_in("/sys/fs/cgroup/memory.max", ""), used = number_in("/sys/fs/cgroup/memory.current", "");
    if (!limit)
        return UINT64_MAX;
    /* what the system gives up when memory is short */
    uint64_t kept = number_in(STATISTICS, "active_file ") + number_in(STATISTICS, "inactive_file ") +
                    number_in(STATISTICS, "slab_reclaimable ");
    return limit + kept > used ? limit + kept - used : 0;
}

static uint64_t of_address_space(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    uint64_t used = number_in("/proc/self/statm", "") * (uint64_t)sysconf(_SC_PAGESIZE);
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

uint64_t host_memory_available(void) {
    uint64_t system = of_system(), group = of_control_group(), space = of_address_space();
    uint64_t least = system < group ? system : group;
    return least < space ? least : space;
}
