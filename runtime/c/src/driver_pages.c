#define _GNU_SOURCE
#include "driver_pages.h"

#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_LIBRARIES = 512, PAGES_AT_ONCE = 512 };

/* Of an entry of /proc/self/pagemap (Documentation/admin-guide/mm/pagemap.rst of Linux). */
static const uint64_t OF_FILE = UINT64_C(1) << 61, SWAPPED = UINT64_C(1) << 62, PRESENT = UINT64_C(1) << 63;

/* Libraries by the places of their program headers. */
typedef struct libraries {
    const void *all[MOST_LIBRARIES];
    size_t count;
    bool too_many;
} libraries;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static libraries of_application, of_driver;
static bool noted;

static bool holds(const libraries *some, const void *library) {
    for (size_t i = 0; i < some->count; ++i)
        if (some->all[i] == library)
            return true;
    return false;
}

static void add(libraries *some, const void *library) {
    some->too_many = some->too_many || some->count == MOST_LIBRARIES;
    if (!some->too_many)
        some->all[some->count++] = library;
}

static int note_before(struct dl_phdr_info *library, size_t bytes, void *unused) {
    (void)bytes, (void)unused;
    add(&of_application, library->dlpi_phdr);
    return 0;
}

static int note_after(struct dl_phdr_info *library, size_t bytes, void *unused) {
    (void)bytes, (void)unused;
    if (!of_application.too_many && !holds(&of_application, library->dlpi_phdr))
        add(&of_driver, library->dlpi_phdr);
    return 0;
}

void driver_pages_before(void) {
    pthread_mutex_lock(&lock);
    of_application = (libraries){.count = 0};
    dl_iterate_phdr(note_before, NULL);
    pthread_mutex_unlock(&lock);
}

void driver_pages_after(void) {
    pthread_mutex_lock(&lock);
    if (!noted)
        dl_iterate_phdr(note_after, NULL);
    noted = true;
    pthread_mutex_unlock(&lock);
}

/* Whether a page is as it is in its file, or not in memory at all. */
static bool may_rest(uint64_t entry) {
    return !(entry & SWAPPED) && (!(entry & PRESENT) || (entry & OF_FILE));
}

static void rest_between(int pagemap, uintptr_t begin, uintptr_t end, size_t page) {
    uint64_t entries[PAGES_AT_ONCE];
    while (begin < end) {
        size_t left = (end - begin) / page, wanted = left < PAGES_AT_ONCE ? left : PAGES_AT_ONCE;
        ssize_t got = pread(pagemap, entries, wanted * sizeof *entries, (off_t)(begin / page * sizeof *entries));
        if (got < (ssize_t)sizeof *entries)
            return;
        size_t count = (size_t)got / sizeof *entries;
        for (size_t i = 0; i < count; ++i) {
            size_t first = i;
            while (i < count && may_rest(entries[i]))
                ++i;
            if (i > first)
                madvise((void *)(begin + first * page), (i - first) * page, MADV_DONTNEED);
        }
        begin += count * page;
    }
}

static int rest_library(struct dl_phdr_info *library, size_t bytes, void *pagemap) {
    (void)bytes;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (!holds(&of_driver, library->dlpi_phdr))
        return 0;
    for (size_t i = 0; i < library->dlpi_phnum; ++i) {
        const ElfW(Phdr) *part = library->dlpi_phdr + i;
        uintptr_t begin = library->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;
        if (part->p_type == PT_LOAD && !(part->p_flags & PF_W))
            rest_between(*(const int *)pagemap, begin / page * page, (end + page - 1) / page * page, page);
    }
    return 0;
}

void driver_pages_rest(void) {
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pagemap < 0)
        return; /* what cannot be told apart stays */
    pthread_mutex_lock(&lock);
    dl_iterate_phdr(rest_library, &pagemap);
    pthread_mutex_unlock(&lock);
    close(pagemap);
}
