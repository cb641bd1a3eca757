/* What becomes of the pages of the driver's library when a plan is open. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drive.h"
#include "stub_opencl.h"

/* How many of the whole pages of a table are in memory. */
static size_t pages_here(const unsigned char *begin, size_t count, size_t page) {
    int pagemap = open("/proc/self/pagemap", O_RDONLY);
    size_t here = 0;
    CHECK(pagemap >= 0);
    for (size_t i = 0; i < count; ++i) {
        uint64_t entry;
        off_t place = (off_t)(((uintptr_t)begin / page + i) * sizeof entry);
        CHECK(pread(pagemap, &entry, sizeof entry, place) == sizeof entry);
        here += entry >> 63;
    }
    close(pagemap);
    return here;
}

static void open_and_close(const char *path) {
    smartmem_plan_options options = with_stub();
    smartmem_plan plan;
    CHECK(smartmem_plan_open(path, &options, &plan) == SMARTMEM_OK);
    CHECK(smartmem_plan_close(plan) == SMARTMEM_OK);
}

/* @param came_with_plan whether the library is in the process because a plan was opened */
void drive_pages(const char *path, int came_with_plan) {
    open_and_close(path);
    const unsigned char *table = dlsym(dlopen(stub, RTLD_NOW | RTLD_NOLOAD), "stub_table");
    CHECK(table != NULL && table[0] == 7);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *first = (unsigned char *)(((uintptr_t)table + page - 1) / page * page), *written = first + 5 * page;
    size_t count = ((uintptr_t)table + STUB_TABLE_BYTES - (uintptr_t)first) / page;
    unsigned sum = 0;
    for (size_t i = 0; i < count; ++i)
        sum += *(const volatile unsigned char *)(first + i * page);
    CHECK(sum <= 7 && pages_here(first, count, page) == count);
    CHECK(mprotect(written, page, PROT_READ | PROT_WRITE) == 0);
    written[3] = 99;
    CHECK(mprotect(written, page, PROT_READ) == 0);
    open_and_close(path);
    CHECK(pages_here(first, count, page) == (came_with_plan ? 1 : count));
    CHECK(written[3] == 99 && table[0] == 7 && first[6 * page] == 0);
}
