// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "stage_link.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void fh_control_begin(struct fh_control *control, uint32_t buffers, uint64_t buffer_bytes) {
    control->version = FH_LINK_VERSION;
    control->slots = FH_LINK_SLOTS;
    control->buffers = buffers;
    control->buffer_bytes = buffer_bytes;
}

int fh_memory(const char *name, uint64_t bytes) {
    int file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0) return -1;
    if (ftruncate(file, (off_t)bytes) != 0 || fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        int code = errno;
        close(file);
        errno = code;
        return -1;
    }
    return file;
}

int fh_process(int pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

int fh_follow_parent(int parent) {
    struct rlimit none = {0, 0};
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    if (setrlimit(RLIMIT_CORE, &none) != 0) return -1;
    // It may have ended before the first call.
    if (getppid() != parent) {
        errno = ESRCH;
        return -1;
    }
    return 0;
}

void fh_wait(uint32_t *word, uint32_t value, int64_t nanoseconds) {
    struct timespec time = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &time, NULL, 0);
}

void fh_wake(uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0); }
