// SPDX-License-Identifier: Apache-2.0

#ifndef FRAMEHOST_MALLOC_COUNT_H
#define FRAMEHOST_MALLOC_COUNT_H

#include <stdbool.h>

/// Counts heap allocations of chosen threads: this image's malloc and its like stand before the C library's (glibc).
///
/// A thread names the group it counts for; groups keep tests that run at the same time apart.

enum { FH_MALLOC_GROUPS = 64 };

/// False under a sanitizer, which brings a malloc of its own: then nothing is counted.
bool fh_malloc_is_counted(void);

/// From here on the running thread's allocations count for `group`, 1 to FH_MALLOC_GROUPS − 1; 0 counts none.
void fh_malloc_join(int group);

/// Allocations of all threads of `group` so far.
long fh_malloc_count(int group);

/// Writes the callers of each further allocation of `group` to standard error; 0 writes none. For finding where one comes from.
void fh_malloc_trace(int group);

#endif
