// failing_malloc.c: preloaded, it makes chosen allocations of the process fail (glibc)
// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

static atomic_int counting;
static atomic_int fails_rest;
static atomic_long seen;
static atomic_long fails_at;

// From now on allocation `n` (from 0 on, of all threads together; -1: none) fails, and if `rest` is
// not 0 all after it too.
void fail_allocation(long n, int rest) {
    fails_at = n;
    fails_rest = rest;
    seen = 0;
    counting = 1;
}

void fail_none(void) {
    counting = 0;
}

long seen_allocations(void) {
    return seen;
}

static int fails(void) {
    if (!counting) return 0;
    const long k = seen++;
    if (k != fails_at && !(fails_rest && fails_at >= 0 && k > fails_at)) return 0;
    errno = ENOMEM;
    return 1;
}

void* malloc(size_t size) {
    return fails() ? NULL : __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
    return fails() ? NULL : __libc_calloc(count, size);
}

void* realloc(void* block, size_t size) {
    return fails() ? NULL : __libc_realloc(block, size);
}

void* memalign(size_t alignment, size_t size) {
    return fails() ? NULL : __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment, size);
}

int posix_memalign(void** block, size_t alignment, size_t size) {
    void* const got = memalign(alignment, size);
    if (got == NULL) return ENOMEM;
    *block = got;
    return 0;
}
