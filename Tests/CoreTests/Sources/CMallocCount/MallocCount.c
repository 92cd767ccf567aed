// SPDX-License-Identifier: Apache-2.0

#include "CMallocCount.h"

#include <errno.h>
#include <execinfo.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define FH_SANITIZED 1
#endif
#endif

// Initial-exec: reading it must not itself allocate.
static __thread int counted_group __attribute__((tls_model("initial-exec")));
static atomic_long counts[FH_MALLOC_GROUPS];
static atomic_int traced_group;

void fh_malloc_join(int group) { counted_group = group > 0 && group < FH_MALLOC_GROUPS ? group : 0; }
long fh_malloc_count(int group) { return atomic_load(&counts[group]); }
void fh_malloc_trace(int group) { atomic_store(&traced_group, group); }

#ifdef FH_SANITIZED

bool fh_malloc_is_counted(void) { return false; }

#else

// What glibc itself calls; there since its first version.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

bool fh_malloc_is_counted(void) { return true; }

static void note(void) {
  int group = counted_group;
  if (group == 0) return;
  atomic_fetch_add_explicit(&counts[group], 1, memory_order_relaxed);
  if (atomic_load_explicit(&traced_group, memory_order_relaxed) != group) return;
  counted_group = 0;  // What follows may allocate.
  // By frame pointers, which Swift and its runtime keep: some of the runtime has no unwind tables.
  void *frames[32];
  int depth = 0;
  void **frame = __builtin_frame_address(0);
  while (depth < 32 && frame != NULL && frame[1] != NULL) {
    frames[depth++] = frame[1];
    void **next = frame[0];
    if (next <= frame || (char *)next - (char *)frame > 1 << 20) break;
    frame = next;
  }
  backtrace_symbols_fd(frames, depth, STDERR_FILENO);
  (void)!write(STDERR_FILENO, "--\n", 3);
  counted_group = group;
}

void *malloc(size_t size) {
  note();
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  note();
  return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
  note();
  return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  note();
  return __libc_memalign(alignment, size);
}

void *memalign(size_t alignment, size_t size) {
  note();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
  if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) return EINVAL;
  note();
  void *block = __libc_memalign(alignment, size);
  if (block == NULL) return ENOMEM;
  *result = block;
  return 0;
}

#endif
