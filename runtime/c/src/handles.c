#include "handles.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

/* An id is the place in the table from 1 on, the kind, and how many handles have had the place. */
enum { PLACE_BITS = 24, KIND_BITS = 8 };

typedef struct entry {
    void *object; /* NULL: the place is free */
    uint32_t generation;
    uint32_t users;
    handle_kind kind;
    bool closing;
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;
static entry *table;
static size_t count;

static uint64_t id_of(size_t place) {
    const entry *one = table + place;
    return (uint64_t)one->generation << (PLACE_BITS + KIND_BITS) | (uint64_t)one->kind << PLACE_BITS | (place + 1);
}

/* The entry of an open handle, else NULL. */
static entry *entry_of(handle_kind kind, uint64_t id) {
    size_t place = (size_t)(id & ((1u << PLACE_BITS) - 1));
    if (!place || place > count)
        return NULL;
    entry *one = table + place - 1;
    return one->object != NULL && !one->closing && one->kind == kind && id_of(place - 1) == id ? one : NULL;
}

static bool grow(void) {
    size_t more = count ? 2 * count : 16;
    if (more >= 1u << PLACE_BITS)
        return false;
    entry *grown = realloc(table, more * sizeof *grown);
    if (grown == NULL)
        return false;
    for (size_t i = count; i < more; ++i)
        grown[i] = (entry){0};
    table = grown;
    count = more;
    return true;
}

uint64_t handle_new(handle_kind kind, void *object) {
    uint64_t id = 0;
    size_t place = 0;
    pthread_mutex_lock(&lock);
    while (place < count && table[place].object != NULL)
        ++place;
    if (place < count || grow()) {
        table[place] = (entry){.object = object, .generation = table[place].generation + 1, .kind = kind};
        id = id_of(place);
    }
    pthread_mutex_unlock(&lock);
    return id;
}

void *handle_use(handle_kind kind, uint64_t id) {
    pthread_mutex_lock(&lock);
    entry *one = entry_of(kind, id);
    void *object = NULL;
    if (one != NULL) {
        ++one->users;
        object = one->object;
    }
    pthread_mutex_unlock(&lock);
    return object;
}

void handle_done(uint64_t id) {
    pthread_mutex_lock(&lock);
    entry *one = table + (id & ((1u << PLACE_BITS) - 1)) - 1;
    if (--one->users == 0 && one->closing)
        pthread_cond_broadcast(&left);
    pthread_mutex_unlock(&lock);
}

void *handle_take(handle_kind kind, uint64_t id) {
    pthread_mutex_lock(&lock);
    entry *one = entry_of(kind, id);
    void *object = NULL;
    if (one != NULL) {
        size_t place = (size_t)(one - table);
        one->closing = true;
        while (table[place].users) /* the table may move meanwhile */
            pthread_cond_wait(&left, &lock);
        object = table[place].object;
        table[place].object = NULL;
    }
    pthread_mutex_unlock(&lock);
    return object;
}
