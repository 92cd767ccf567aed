// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "stage_link_host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

void fh_control_begin(
    struct fh_control *control, uint32_t buffers, uint64_t buffer_bytes, const char *format, uint32_t width, uint32_t height) {
    control->version = FH_LINK_VERSION;
    control->slots = FH_LINK_SLOTS;
    control->buffers = buffers;
    control->buffer_bytes = buffer_bytes;
    strncpy(control->pixel_format, format, sizeof control->pixel_format - 1);
    control->width = width;
    control->height = height;
}

void fh_control_add_plane(struct fh_control *control, struct fh_plane plane) {
    if (control->planes < 4) control->plane[control->planes++] = plane;
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

#if defined(__x86_64__)
#define FH_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define FH_ARCH AUDIT_ARCH_AARCH64
#endif

int fh_forbid_network(void) {
#ifdef FH_ARCH
    const uint32_t refuse = SECCOMP_RET_ERRNO | EACCES;
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FH_ARCH, 1, 0),
        // Calls by another table, such as that of 32 bits.
        BPF_STMT(BPF_RET | BPF_K, refuse),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        // x32 has numbers of its own in the table of x86-64.
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
        // The lower half of the family: both kinds of machine are little-endian, and the kernel takes an int.
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, refuse),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof lines / sizeof lines[0], .filter = lines};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
#else
    errno = ENOSYS;
    return -1;
#endif
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
