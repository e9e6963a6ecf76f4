/* Memory of which the k-th allocation fails. Link with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free. */
#ifndef FAILING_MEMORY_H
#define FAILING_MEMORY_H

#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __wrap_free(void *memory);

/* asked for since the last call of the functions below; not freed; the one that fails */
static long taken, held, failing = -1;

static inline void fail_allocation(long k) {
    taken = held = 0;
    failing = k;
}

static inline void fail_no_allocation(void) { fail_allocation(-1); }

static int fails(void) { return taken++ == failing; }

void *__wrap_malloc(size_t size) {
    if (fails()) return NULL;
    held++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    if (fails()) return NULL;
    held++;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size) {
    if (fails()) return NULL;
    held += !memory;
    return __real_realloc(memory, size);
}

void __wrap_free(void *memory) {
    held -= memory != NULL;
    __real_free(memory);
}

#endif
