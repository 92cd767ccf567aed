// SPDX-License-Identifier: Apache-2.0

// Counts allocations by thread name, for tests: LD_PRELOAD it and name a file of 4096 zero bytes in MALLOC_COUNTS. The file is 128 entries of
// 16 bytes of name and 16 of count (little endian, the first 8 used), kept up to date by every allocation.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

struct entry {
    char name[16];
    atomic_ullong count;
    uint64_t unused;
};
enum { MOST = 4096 / sizeof(struct entry) };
static struct entry *entries;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

__attribute__((constructor)) static void open_counts(void) {
    const char *path = getenv("MALLOC_COUNTS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory != MAP_FAILED) entries = memory;
}

static void count(void) {
    if (!entries) return;
    int before = errno;
    char name[17] = {0};
    prctl(PR_GET_NAME, name);
    name[15] = 0;
    for (int pass = 0; pass < 2; pass++) {
        if (pass) pthread_mutex_lock(&adding);
        for (int i = 0; i < MOST; i++) {
            if (!entries[i].name[0] && pass) strcpy(entries[i].name, name);
            if (strcmp(entries[i].name, name)) continue;
            atomic_fetch_add_explicit(&entries[i].count, 1, memory_order_relaxed);
            if (pass) pthread_mutex_unlock(&adding);
            errno = before;
            return;
        }
        if (pass) pthread_mutex_unlock(&adding);
    }
    errno = before;
}

void *malloc(size_t bytes) { count(); return __libc_malloc(bytes); }
void *calloc(size_t n, size_t bytes) { count(); return __libc_calloc(n, bytes); }
void *realloc(void *old, size_t bytes) { count(); return __libc_realloc(old, bytes); }
void *memalign(size_t alignment, size_t bytes) { count(); return __libc_memalign(alignment, bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) { count(); return __libc_memalign(alignment, bytes); }
int posix_memalign(void **out, size_t alignment, size_t bytes) {
    count();
    *out = __libc_memalign(alignment, bytes);
    return *out || !bytes ? 0 : ENOMEM;
}
