#define _GNU_SOURCE
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sha256.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14; older ones refuse it, and give pages one by one */
#endif

enum {
    VERSION = 9,
    HEADER_BYTES = 128,
    VERSION_AT = 8,
    HEADER_BYTES_AT = 12,
    FILE_BYTES_AT = 16,
    INDEX_OFFSET_AT = 24,
    INDEX_BYTES_AT = 32,
    INDEX_DIGEST_AT = 40,
    ALIGNMENT_AT = 72,
    HEADER_DIGEST_AT = 96,
    MOST_INDEX_BYTES = 1 << 28,
    MOST_ALIGNMENT = 4096
};

static const uint8_t MAGIC[8] = {0x89, 'S', 'M', 'P', '\r', '\n', 0x1a, '\n'};

static uint64_t number_at(const uint8_t *data, unsigned bytes) {
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i)
        value |= (uint64_t)data[i] << 8 * i;
    return value;
}

static bool digest_is(const uint8_t *data, size_t bytes, const uint8_t *wanted) {
    sha256 hash;
    uint8_t digest[SHA256_BYTES];
    sha256_begin(&hash);
    sha256_add(&hash, data, bytes);
    sha256_end(&hash, digest);
    return memcmp(digest, wanted, sizeof digest) == 0;
}

static smartmem_status damaged(const char *what) {
    return fail(SMARTMEM_BAD_PLAN, "the plan is damaged: %s", what);
}

/* Checks header and index, and notes where the index is. */
static smartmem_status check(plan_file *file) {
    const uint8_t *data = file->data;
    if (file->bytes < HEADER_BYTES || memcmp(data, MAGIC, sizeof MAGIC) != 0)
        return fail(SMARTMEM_BAD_PLAN, "this is no plan");
    uint64_t version = number_at(data + VERSION_AT, 4);
    if (version != VERSION)
        return fail(SMARTMEM_BAD_PLAN, "the plan has version %u, this library reads version %d", (unsigned)version,
                    VERSION);
    if (!digest_is(data, HEADER_DIGEST_AT, data + HEADER_DIGEST_AT) ||
        number_at(data + HEADER_BYTES_AT, 4) != HEADER_BYTES)
        return damaged("the digest of its header is another one");
    if (number_at(data + FILE_BYTES_AT, 8) != file->bytes)
        return damaged("its size is another one than it says");
    file->alignment = (size_t)number_at(data + ALIGNMENT_AT, 4);
    if (!file->alignment || MOST_ALIGNMENT % file->alignment)
        return damaged("its kernels need memory at multiples of a size that is no power of two");
    uint64_t offset = number_at(data + INDEX_OFFSET_AT, 8), bytes = number_at(data + INDEX_BYTES_AT, 8);
    if (offset < HEADER_BYTES || offset > file->bytes || bytes > file->bytes - offset || bytes > MOST_INDEX_BYTES)
        return damaged("its index lies outside of the file");
    file->index_offset = (size_t)offset;
    file->index_bytes = (size_t)bytes;
    if (!digest_is(data + offset, file->index_bytes, data + INDEX_DIGEST_AT))
        return damaged("the digest of its index is another one");
    memcpy(file->index_digest, data + INDEX_DIGEST_AT, PLAN_DIGEST_BYTES);
    return SMARTMEM_OK;
}

smartmem_status plan_file_open_memory(plan_file *file, const void *data, size_t bytes) {
    *file = (plan_file){.data = data, .bytes = bytes};
    return check(file);
}

smartmem_status plan_file_open_descriptor(plan_file *file, int descriptor, uint64_t offset, uint64_t bytes) {
    struct stat about;
    *file = (plan_file){0};
    if (fstat(descriptor, &about) != 0)
        return fail(SMARTMEM_BAD_FILE, "the descriptor cannot be read: %s", strerror(errno));
    uint64_t size = about.st_size < 0 ? 0 : (uint64_t)about.st_size;
    if (offset > size || bytes > size - offset)
        return fail(SMARTMEM_BAD_SIZE, "the file ends before byte %llu", (unsigned long long)(offset + bytes));
    uint64_t wanted = bytes ? bytes : size - offset;
    uint64_t before = offset % (uint64_t)sysconf(_SC_PAGESIZE);
    if (wanted < HEADER_BYTES || wanted > SIZE_MAX / 2)
        return fail(SMARTMEM_BAD_PLAN, "this is no plan");
    file->mapping_bytes = (size_t)(wanted + before);
    file->mapping = mmap(NULL, file->mapping_bytes, PROT_READ, MAP_PRIVATE, descriptor, (off_t)(offset - before));
    if (file->mapping == MAP_FAILED)
        return fail(SMARTMEM_BAD_FILE, "the file cannot be mapped into memory: %s", strerror(errno));
    file->data = (const uint8_t *)file->mapping + before;
    file->bytes = (size_t)wanted;
    smartmem_status status = check(file);
    if (status != SMARTMEM_OK)
        plan_file_close(file);
    return status;
}

smartmem_status plan_file_open(plan_file *file, const char *path) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return fail(SMARTMEM_BAD_FILE, "%s: %s", path, strerror(errno));
    smartmem_status status = plan_file_open_descriptor(file, descriptor, 0, 0);
    close(descriptor);
    return status;
}

void plan_file_close(plan_file *file) {
    if (file->mapping != NULL)
        munmap(file->mapping, file->mapping_bytes);
    *file = (plan_file){0};
}

void plan_file_rest(const plan_file *file) {
    if (file->mapping != NULL)
        madvise(file->mapping, file->mapping_bytes, MADV_DONTNEED);
}

/* Tells the system of the whole pages of a part. */
static void advise_part(const plan_file *file, uint64_t offset, uint64_t bytes, int advice) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (file->mapping == NULL)
        return;
    size_t first = (size_t)(file->data - (const uint8_t *)file->mapping) + (size_t)offset;
    size_t begin = (first + page - 1) / page * page, end = (first + (size_t)bytes) / page * page;
    if (begin < end)
        madvise((uint8_t *)file->mapping + begin, end - begin, advice);
}

void plan_file_rest_part(const plan_file *file, uint64_t offset, uint64_t bytes) {
    advise_part(file, offset, bytes, MADV_DONTNEED);
}

void plan_file_wake_part(const plan_file *file, uint64_t offset, uint64_t bytes) {
    advise_part(file, offset, bytes, MADV_POPULATE_READ);
}

bool plan_file_holds(const plan_file *file, uint64_t offset, uint64_t bytes) {
    return offset <= file->bytes && bytes <= file->bytes - offset && file->bytes - offset - bytes >= PLAN_SLACK;
}

uint64_t plan_file_sum(const plan_file *file, uint64_t offset, uint64_t bytes) {
    const uint8_t *from = file->data + offset;
    uint64_t total = 0, word, whole = bytes / 8;
    for (uint64_t i = 0; i < whole; ++i) {
        memcpy(&word, from + 8 * i, sizeof word); /* all systems that OpenCL runs on are little-endian */
        total += word;
    }
    return total + number_at(from + 8 * whole, (unsigned)(bytes % 8));
}
