#define _GNU_SOURCE
#include "cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sha256.h"

enum { MAGIC_BYTES = 8, HEAD_BYTES = MAGIC_BYTES + SHA256_BYTES };

static const uint8_t MAGIC[MAGIC_BYTES] = {'S', 'M', 'R', 'P', 'R', 'O', 'G', '1'};
static const uint64_t MOST_BYTES = 256u << 20;

static void add_text(sha256 *hash, const char *text) {
    sha256_add(hash, text, strlen(text));
}

void cache_key(char key[CACHE_KEY_BYTES], const char *text, const char *options, size_t options_bytes,
               const Device *device) {
    const char *const names[] = {device->names.platform, device->names.name, device->names.driver,
                                 device->names.version};
    sha256 hash;
    uint8_t digest[SHA256_BYTES];
    sha256_begin(&hash);
    add_text(&hash, text);
    sha256_add(&hash, "", 1);
    sha256_add(&hash, options, options_bytes);
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        sha256_add(&hash, "", 1);
        add_text(&hash, names[i]);
    }
    sha256_end(&hash, digest);
    for (size_t i = 0; i < SHA256_BYTES; ++i)
        snprintf(key + 2 * i, 3, "%02x", digest[i]);
}

/* The folder that the options name or have open; the caller closes it. */
static int folder_of(const smartmem_plan_options *options) {
    const char *folder = options->cache_folder;
    if (options->cache_descriptor != NULL)
        return fcntl(*options->cache_descriptor, F_DUPFD_CLOEXEC, 0);
    if (folder == NULL || !*folder)
        return -1;
    mkdir(folder, 0777);
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int cache_open(const smartmem_plan_options *options) {
    int base = folder_of(options);
    if (base < 0)
        return -1;
    mkdirat(base, "programs", 0777);
    int found = openat(base, "programs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(base);
    return found;
}

static void digest_of(const uint8_t *data, size_t bytes, uint8_t digest[SHA256_BYTES]) {
    sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, data, bytes);
    sha256_end(&hash, digest);
}

static uint8_t *whole_file(int descriptor, size_t *bytes) {
    struct stat about;
    if (fstat(descriptor, &about) != 0 || about.st_size < HEAD_BYTES)
        return NULL;
    size_t size = (size_t)about.st_size, done = 0;
    uint8_t *data = malloc(size);
    while (data != NULL && done < size) {
        ssize_t part = read(descriptor, data + done, size - done);
        if (part <= 0) {
            free(data);
            return NULL;
        }
        done += (size_t)part;
    }
    *bytes = size;
    return data;
}

uint8_t *cache_read(int folder, const char *key, size_t *bytes) {
    int descriptor = folder < 0 ? -1 : openat(folder, key, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return NULL;
    uint8_t digest[SHA256_BYTES], *data = whole_file(descriptor, bytes);
    futimens(descriptor, NULL); /* those that were used least recently go first */
    close(descriptor);
    if (data != NULL) {
        digest_of(data + HEAD_BYTES, *bytes - HEAD_BYTES, digest);
        if (memcmp(data, MAGIC, MAGIC_BYTES) == 0 && memcmp(data + MAGIC_BYTES, digest, SHA256_BYTES) == 0) {
            *bytes -= HEAD_BYTES;
            memmove(data, data + HEAD_BYTES, *bytes);
            return data;
        }
        free(data);
    }
    unlinkat(folder, key, 0);
    return NULL;
}

static bool written(int descriptor, const uint8_t *data, size_t bytes) {
    while (bytes) {
        ssize_t part = write(descriptor, data, bytes);
        if (part <= 0)
            return false;
        data += part;
        bytes -= (size_t)part;
    }
    return true;
}

/* Removes the file that was used least recently if all together exceed the bound; says whether it has. */
static bool forget_one(int folder) {
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    char oldest[256] = "";
    struct timespec oldest_time = {0, 0};
    uint64_t total = 0;
    struct stat about;
    for (struct dirent *one = entries ? readdir(entries) : NULL; one != NULL; one = readdir(entries)) {
        if (fstatat(folder, one->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode))
            continue;
        total += (uint64_t)about.st_size;
        if (!*oldest || about.st_mtim.tv_sec < oldest_time.tv_sec ||
            (about.st_mtim.tv_sec == oldest_time.tv_sec && about.st_mtim.tv_nsec < oldest_time.tv_nsec)) {
            snprintf(oldest, sizeof oldest, "%s", one->d_name);
            oldest_time = about.st_mtim;
        }
    }
    if (entries != NULL)
        closedir(entries);
    return total > MOST_BYTES && unlinkat(folder, oldest, 0) == 0;
}

void cache_write(int folder, const char *key, const uint8_t *binary, size_t bytes) {
    char name[CACHE_KEY_BYTES + 32];
    uint8_t head[HEAD_BYTES];
    if (folder < 0)
        return;
    snprintf(name, sizeof name, ".%s.%ld", key, (long)getpid());
    int descriptor = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return;
    memcpy(head, MAGIC, MAGIC_BYTES);
    digest_of(binary, bytes, head + MAGIC_BYTES);
    bool good = written(descriptor, head, sizeof head) && written(descriptor, binary, bytes);
    good = close(descriptor) == 0 && good;
    if (!good || renameat(folder, name, folder, key) != 0)
        unlinkat(folder, name, 0);
    while (forget_one(folder))
        ;
}

static void use_folder_for_driver(const char *folder) {
    char path[4096];
    if (folder == NULL || !*folder || getenv("POCL_CACHE_DIR") != NULL)
        return;
    if (snprintf(path, sizeof path, "%s/pocl", folder) >= (int)sizeof path)
        return;
    mkdir(folder, 0777);
    mkdir(path, 0777);
    if (access(path, W_OK) == 0)
        setenv("POCL_CACHE_DIR", path, 0);
}

smartmem_status cache_for_driver(const smartmem_plan_options *options) {
    char link[64], path[4096];
    struct stat about;
    if (options->cache_descriptor == NULL) {
        use_folder_for_driver(options->cache_folder);
        return SMARTMEM_OK;
    }
    if (fstat(*options->cache_descriptor, &about) != 0 || !S_ISDIR(about.st_mode))
        return fail(SMARTMEM_BAD_ARGUMENT, "the cache's descriptor %d is that of no folder", *options->cache_descriptor);
    /* the descriptor may be closed before the driver is done with its folder */
    snprintf(link, sizeof link, "/proc/self/fd/%d", *options->cache_descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    use_folder_for_driver(path);
    return SMARTMEM_OK;
}
