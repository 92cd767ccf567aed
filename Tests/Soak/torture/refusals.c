// SPDX-License-Identifier: Apache-2.0

// Refuses system calls at random, for the torture run: LD_PRELOAD it.
//
//   REFUSALS        seed:rate:skip:most:calls   rate in millionths; the first `skip` calls pass; at most `most` refusals; calls: names of the table
//                   below with commas between
//   REFUSALS_UNDER  paths outside this folder are left alone; without it every path may be refused
//   REFUSALS_LOG    one line for each refusal: call, errno, path or descriptor
//   REFUSALS_AS     errno of every refusal, instead of those of the table
//   LIMITS          files:bytes                 RLIMIT_NOFILE and RLIMIT_FSIZE, 0 for none
//
// What the nth call of a name gets depends on the seed, its name and n alone. Standard input, output and error are left alone. The loader's own
// calls and malloc's do not pass here.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

enum call {
    OPEN, WRITE, SHORT, READ, RENAME, MMAP, SOCKET, BIND, LISTEN, ACCEPT, SEND, RECV, FTRUNCATE, SYNC, UNLINK, MKDIR, FLOCK, STAT, FSTAT, STATVFS,
    OPENDIR, READDIR, CLOSE, SEEK, TIMES, CHMOD, THREAD, LOOP, CALLS
};
static const struct {
    const char *name;
    int errors[8];
} table[CALLS] = {
    [OPEN] = {"open", {EACCES, EMFILE, ENFILE, EIO, ENOSPC, EROFS, ENOENT, ENOMEM}},
    [WRITE] = {"write", {ENOSPC, EIO, EDQUOT, EFBIG, EINTR, ENOSPC, EIO, EINTR}},
    [SHORT] = {"short", {0}},
    [READ] = {"read", {EIO, EINTR, EIO, EINTR, EISDIR, EIO, EINTR, ESTALE}},
    [RENAME] = {"rename", {EACCES, EXDEV, ENOSPC, EBUSY, EIO, EROFS, EPERM, ENOENT}},
    [MMAP] = {"mmap", {ENOMEM, ENOMEM, EAGAIN, ENFILE, ENODEV, EACCES, EPERM, ENOMEM}},
    [SOCKET] = {"socket", {EMFILE, ENFILE, EAFNOSUPPORT, EACCES, ENOBUFS, ENOMEM, EPROTONOSUPPORT, EMFILE}},
    [BIND] = {"bind", {EADDRINUSE, EACCES, EADDRNOTAVAIL, EADDRINUSE, ENOMEM, EADDRINUSE, EINVAL, EADDRNOTAVAIL}},
    [LISTEN] = {"listen", {EADDRINUSE, EADDRINUSE, EOPNOTSUPP, EADDRINUSE, EADDRINUSE, EADDRINUSE, EADDRINUSE, EADDRINUSE}},
    [ACCEPT] = {"accept", {EMFILE, ENFILE, ECONNABORTED, ENOBUFS, EPERM, EPROTO, ENOMEM, EINTR}},
    [SEND] = {"send", {ECONNRESET, EPIPE, ENOBUFS, EINTR, EAGAIN, ENETUNREACH, EPERM, EHOSTUNREACH}},
    [RECV] = {"recv", {ECONNRESET, ETIMEDOUT, EINTR, EAGAIN, ECONNREFUSED, ENOMEM, ECONNRESET, EHOSTUNREACH}},
    [FTRUNCATE] = {"ftruncate", {EIO, EPERM, EINVAL, EINTR, ENOSPC, EIO, EFBIG, EPERM}},
    [SYNC] = {"sync", {EIO, ENOSPC, EDQUOT, EINVAL, EIO, EROFS, EINTR, EIO}},
    [UNLINK] = {"unlink", {EACCES, EBUSY, EPERM, EROFS, EIO, ENOENT, ESTALE, EPERM}},
    [MKDIR] = {"mkdir", {EACCES, ENOSPC, EROFS, EDQUOT, EEXIST, EMLINK, ENOENT, EPERM}},
    [FLOCK] = {"flock", {ENOLCK, EWOULDBLOCK, EOPNOTSUPP, EINTR, EINVAL, ENOLCK, EIO, EWOULDBLOCK}},
    [STAT] = {"stat", {EACCES, ENOENT, EIO, ENOMEM, ELOOP, ENOTDIR, ESTALE, EACCES}},
    [FSTAT] = {"fstat", {EIO, ENOMEM, ESTALE, EIO, ENOMEM, ESTALE, EIO, EOVERFLOW}},
    [STATVFS] = {"statvfs", {ENOSYS, EIO, EACCES, EINTR, ENOMEM, EIO, ENOENT, EOVERFLOW}},
    [OPENDIR] = {"opendir", {EACCES, EMFILE, ENFILE, ENOENT, ENOMEM, EIO, EACCES, EMFILE}},
    [READDIR] = {"readdir", {EIO, ENOENT, EIO, ENOENT, EIO, EIO, ESTALE, EIO}},
    [CLOSE] = {"close", {EIO, ENOSPC, EDQUOT, EIO, EINTR, EIO, ENOSPC, EIO}},
    [SEEK] = {"seek", {EIO, ESPIPE, EINVAL, EOVERFLOW, EIO, EINVAL, EIO, ESPIPE}},
    [TIMES] = {"times", {EPERM, EACCES, EROFS, EPERM, EIO, EPERM, EACCES, EPERM}},
    [CHMOD] = {"chmod", {EPERM, EROFS, EPERM, EIO, EPERM, EPERM, EACCES, EPERM}},
    [THREAD] = {"thread", {EAGAIN, EAGAIN, EAGAIN, EAGAIN, EAGAIN, EAGAIN, EAGAIN, EPERM}},
    [LOOP] = {"loop", {EMFILE, ENFILE, ENOMEM, EMFILE, ENFILE, ENOMEM, EMFILE, EMFILE}},
};

static uint64_t seed, rate, skip, most;
static int only_error;
static unsigned wanted;
static atomic_ullong counts[CALLS], all, refused;
static const char *under;
static int log_file = -1;

static long raw_write(int file, const void *bytes, size_t count) { return syscall(SYS_write, file, bytes, count); }

__attribute__((constructor)) static void begin(void) {
    const char *limits = getenv("LIMITS"), *text = getenv("REFUSALS"), *path = getenv("REFUSALS_LOG");
    under = getenv("REFUSALS_UNDER");
    if (path) log_file = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    // Away from the numbers of standard output and error, which may be closed.
    if (log_file >= 0) {
        int far = fcntl(log_file, F_DUPFD_CLOEXEC, 200);
        if (far >= 0) syscall(SYS_close, log_file), log_file = far;
    }
    if (limits) {
        unsigned long files = 0, bytes = 0;
        sscanf(limits, "%lu:%lu", &files, &bytes);
        struct rlimit limit = {files, files};
        if (files) setrlimit(RLIMIT_NOFILE, &limit);
        limit = (struct rlimit){bytes, bytes};
        if (bytes) setrlimit(RLIMIT_FSIZE, &limit);
    }
    unsigned long long s = 0, r = 0, k = 0, m = 0;
    char names[512] = "";
    if (text && sscanf(text, "%llu:%llu:%llu:%llu:%511s", &s, &r, &k, &m, names) == 5) {
        char *rest = names;
        for (char *name; (name = strsep(&rest, ","));)
            for (int i = 0; i < CALLS; i++)
                if (!strcmp(name, table[i].name)) wanted |= 1u << i;
        seed = s, rate = r, skip = k, most = m;
    }
    if (getenv("REFUSALS_AS")) only_error = atoi(getenv("REFUSALS_AS"));
    unsetenv("LD_PRELOAD");
}

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/// Whether the connection has ended: the kernel never says EAGAIN then, and SwiftNIO, told of the end by epoll, takes that
/// answer for a fault of its own and ends the program.
static int has_ended(int file) {
    struct pollfd descriptor = {file, POLLRDHUP, 0};
    return poll(&descriptor, 1, 0) == 1 && descriptor.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

/// 0: the call may go on; else errno is set.
static int refuse(enum call call, const char *path, int file) {
    if (!(wanted >> call & 1)) return 0;
    // libgcrypt and others end the process where the kernel's own files cannot be read.
    if (path && (!strncmp(path, "/proc/", 6) || !strncmp(path, "/sys/", 5) || !strncmp(path, "/etc/", 5))) return 0;
    if (path && under && path[0] == '/' && strncmp(path, under, strlen(under))) return 0;
    if (!path && file >= 0 && file <= 2) return 0;
    if (!path && file >= 0 && file == log_file) return 0;
    uint64_t n = atomic_fetch_add(&counts[call], 1);
    if (atomic_fetch_add(&all, 1) < skip) return 0;
    uint64_t dice = mix(seed ^ mix(call * 0x10001 + n * 0x1000003));
    if (dice % 1000000 >= rate) return 0;
    int code = call == SHORT ? -1 : only_error ? only_error : table[call].errors[dice >> 40 & 7];
    if (call == RECV && code == EAGAIN && has_ended(file)) return 0;
    if (atomic_fetch_add(&refused, 1) >= most) return 0;
    if (log_file >= 0) {
        char line[400];
        int length = snprintf(line, sizeof line, "%s %llu: %s, %s%.200s (%d)\n", table[call].name, (unsigned long long)n,
                              code < 0 ? "short" : strerrorname_np(code), path ? "path " : "file", path ? path : "", file);
        raw_write(log_file, line, (size_t)length);
    }
    if (code > 0) errno = code;
    return 1;
}

static int is_regular(int file) {
    struct stat status;
    return syscall(SYS_newfstatat, file, "", &status, AT_EMPTY_PATH) == 0 && S_ISREG(status.st_mode);
}
static int is_socket(int file) {
    struct stat status;
    return syscall(SYS_newfstatat, file, "", &status, AT_EMPTY_PATH) == 0 && S_ISSOCK(status.st_mode);
}

#define NEXT(name) \
    static __typeof__(&name) next; \
    if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define MODE \
    mode_t mode = 0; \
    if (flags & (O_CREAT | __O_TMPFILE)) { \
        va_list list; \
        va_start(list, flags); \
        mode = va_arg(list, mode_t); \
        va_end(list); \
    }

int open(const char *path, int flags, ...) { MODE NEXT(open); return refuse(OPEN, path, -1) ? -1 : next(path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE NEXT(open64); return refuse(OPEN, path, -1) ? -1 : next(path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE NEXT(openat); return refuse(OPEN, path, -1) ? -1 : next(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE NEXT(openat64); return refuse(OPEN, path, -1) ? -1 : next(at, path, flags, mode); }
FILE *fopen(const char *path, const char *mode) { NEXT(fopen); return refuse(OPEN, path, -1) ? NULL : next(path, mode); }
FILE *fopen64(const char *path, const char *mode) { NEXT(fopen64); return refuse(OPEN, path, -1) ? NULL : next(path, mode); }
ssize_t write(int file, const void *bytes, size_t count) {
    NEXT(write);
    if ((wanted & (1u << WRITE | 1u << SHORT)) && file > 2 && is_regular(file)) {
        if (refuse(WRITE, NULL, file)) return -1;
        if (count > 1 && refuse(SHORT, NULL, file)) count = 1 + count / 3;
    }
    return next(file, bytes, count);
}
ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) {
    NEXT(pwrite);
    if (refuse(WRITE, NULL, file)) return -1;
    if (count > 1 && refuse(SHORT, NULL, file)) count = 1 + count / 3;
    return next(file, bytes, count, at);
}
ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
    NEXT(pwrite64);
    if (refuse(WRITE, NULL, file)) return -1;
    if (count > 1 && refuse(SHORT, NULL, file)) count = 1 + count / 3;
    return next(file, bytes, count, at);
}
ssize_t read(int file, void *bytes, size_t count) {
    NEXT(read);
    if ((wanted & 1u << READ) && is_regular(file) && refuse(READ, NULL, file)) return -1;
    if ((wanted & 1u << RECV) && is_socket(file) && refuse(RECV, NULL, file)) return -1;
    if (count > 1 && (wanted & 1u << SHORT) && is_regular(file) && refuse(SHORT, NULL, file)) count = 1 + count / 3;
    return next(file, bytes, count);
}
ssize_t pread(int file, void *bytes, size_t count, off_t at) { NEXT(pread); return refuse(READ, NULL, file) ? -1 : next(file, bytes, count, at); }
ssize_t pread64(int file, void *bytes, size_t count, off64_t at) { NEXT(pread64); return refuse(READ, NULL, file) ? -1 : next(file, bytes, count, at); }
int rename(const char *from, const char *to) { NEXT(rename); return refuse(RENAME, to, -1) ? -1 : next(from, to); }
int renameat(int a, const char *from, int b, const char *to) { NEXT(renameat); return refuse(RENAME, to, -1) ? -1 : next(a, from, b, to); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) { NEXT(renameat2); return refuse(RENAME, to, -1) ? -1 : next(a, from, b, to, flags); }
int link(const char *from, const char *to) { NEXT(link); return refuse(RENAME, to, -1) ? -1 : next(from, to); }
int linkat(int a, const char *from, int b, const char *to, int flags) { NEXT(linkat); return refuse(RENAME, to, -1) ? -1 : next(a, from, b, to, flags); }
void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset) {
    NEXT(mmap);
    return refuse(MMAP, NULL, -1) ? MAP_FAILED : next(at, size, protection, flags, file, offset);
}
void *mmap64(void *at, size_t size, int protection, int flags, int file, off64_t offset) {
    NEXT(mmap64);
    return refuse(MMAP, NULL, -1) ? MAP_FAILED : next(at, size, protection, flags, file, offset);
}
int socket(int domain, int type, int protocol) { NEXT(socket); return refuse(SOCKET, NULL, -1) ? -1 : next(domain, type, protocol); }
int bind(int file, const struct sockaddr *address, socklen_t length) { NEXT(bind); return refuse(BIND, NULL, file) ? -1 : next(file, address, length); }
int listen(int file, int backlog) { NEXT(listen); return refuse(LISTEN, NULL, file) ? -1 : next(file, backlog); }
int accept(int file, struct sockaddr *address, socklen_t *length) { NEXT(accept); return refuse(ACCEPT, NULL, file) ? -1 : next(file, address, length); }
int accept4(int file, struct sockaddr *address, socklen_t *length, int flags) {
    NEXT(accept4);
    return refuse(ACCEPT, NULL, file) ? -1 : next(file, address, length, flags);
}
ssize_t send(int file, const void *bytes, size_t count, int flags) { NEXT(send); return refuse(SEND, NULL, file) ? -1 : next(file, bytes, count, flags); }
ssize_t sendto(int file, const void *bytes, size_t count, int flags, const struct sockaddr *to, socklen_t length) {
    NEXT(sendto);
    return refuse(SEND, NULL, file) ? -1 : next(file, bytes, count, flags, to, length);
}
ssize_t sendmsg(int file, const struct msghdr *message, int flags) { NEXT(sendmsg); return refuse(SEND, NULL, file) ? -1 : next(file, message, flags); }
int sendmmsg(int file, struct mmsghdr *messages, unsigned count, int flags) {
    NEXT(sendmmsg);
    return refuse(SEND, NULL, file) ? -1 : next(file, messages, count, flags);
}
ssize_t writev(int file, const struct iovec *pieces, int count) { NEXT(writev); return refuse(SEND, NULL, file) ? -1 : next(file, pieces, count); }
ssize_t recv(int file, void *bytes, size_t count, int flags) { NEXT(recv); return refuse(RECV, NULL, file) ? -1 : next(file, bytes, count, flags); }
ssize_t recvmsg(int file, struct msghdr *message, int flags) { NEXT(recvmsg); return refuse(RECV, NULL, file) ? -1 : next(file, message, flags); }
int recvmmsg(int file, struct mmsghdr *messages, unsigned count, int flags, struct timespec *limit) {
    NEXT(recvmmsg);
    return refuse(RECV, NULL, file) ? -1 : next(file, messages, count, flags, limit);
}
int ftruncate(int file, off_t size) { NEXT(ftruncate); return refuse(FTRUNCATE, NULL, file) ? -1 : next(file, size); }
int ftruncate64(int file, off64_t size) { NEXT(ftruncate64); return refuse(FTRUNCATE, NULL, file) ? -1 : next(file, size); }
int fsync(int file) { NEXT(fsync); return refuse(SYNC, NULL, file) ? -1 : next(file); }
int fdatasync(int file) { NEXT(fdatasync); return refuse(SYNC, NULL, file) ? -1 : next(file); }
int unlink(const char *path) { NEXT(unlink); return refuse(UNLINK, path, -1) ? -1 : next(path); }
int unlinkat(int at, const char *path, int flags) { NEXT(unlinkat); return refuse(UNLINK, path, -1) ? -1 : next(at, path, flags); }
int rmdir(const char *path) { NEXT(rmdir); return refuse(UNLINK, path, -1) ? -1 : next(path); }
int mkdir(const char *path, mode_t mode) { NEXT(mkdir); return refuse(MKDIR, path, -1) ? -1 : next(path, mode); }
int flock(int file, int operation) {
    NEXT(flock);
    return operation != LOCK_UN && refuse(FLOCK, NULL, file) ? -1 : next(file, operation);
}
int stat(const char *path, struct stat *status) { NEXT(stat); return refuse(STAT, path, -1) ? -1 : next(path, status); }
int lstat(const char *path, struct stat *status) { NEXT(lstat); return refuse(STAT, path, -1) ? -1 : next(path, status); }
int fstat(int file, struct stat *status) { NEXT(fstat); return refuse(FSTAT, NULL, file) ? -1 : next(file, status); }
int statvfs(const char *path, struct statvfs *room) { NEXT(statvfs); return refuse(STATVFS, path, -1) ? -1 : next(path, room); }
int fstatvfs(int file, struct statvfs *room) { NEXT(fstatvfs); return refuse(STATVFS, NULL, file) ? -1 : next(file, room); }
int access(const char *path, int mode) { NEXT(access); return refuse(STAT, path, -1) ? -1 : next(path, mode); }
DIR *opendir(const char *path) { NEXT(opendir); return refuse(OPENDIR, path, -1) ? NULL : next(path); }
struct dirent *readdir(DIR *folder) { NEXT(readdir); return refuse(READDIR, NULL, -1) ? NULL : next(folder); }
int close(int file) {
    NEXT(close);
    if (file == log_file && file >= 0) return 0;
    // Closing says of a loss only what was written.
    if ((wanted & 1u << CLOSE) && file > 2 && is_regular(file) && (fcntl(file, F_GETFL) & O_ACCMODE) != O_RDONLY && refuse(CLOSE, NULL, file)) {
        int code = errno;
        next(file);
        errno = code;
        return -1;
    }
    return next(file);
}
off_t lseek(int file, off_t to, int from) { NEXT(lseek); return refuse(SEEK, NULL, file) ? -1 : next(file, to, from); }
off64_t lseek64(int file, off64_t to, int from) { NEXT(lseek64); return refuse(SEEK, NULL, file) ? -1 : next(file, to, from); }
int futimens(int file, const struct timespec times[2]) { NEXT(futimens); return refuse(TIMES, NULL, file) ? -1 : next(file, times); }
int fchmod(int file, mode_t mode) { NEXT(fchmod); return refuse(CHMOD, NULL, file) ? -1 : next(file, mode); }
int fchown(int file, uid_t user, gid_t group) { NEXT(fchown); return refuse(CHMOD, NULL, file) ? -1 : next(file, user, group); }
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *context) {
    NEXT(pthread_create);
    return refuse(THREAD, NULL, -1) ? errno : next(thread, attributes, body, context);
}
int epoll_create1(int flags) { NEXT(epoll_create1); return refuse(LOOP, NULL, -1) ? -1 : next(flags); }
int epoll_create(int size) { NEXT(epoll_create); return refuse(LOOP, NULL, -1) ? -1 : next(size); }
int epoll_ctl(int loop, int operation, int file, struct epoll_event *event) {
    NEXT(epoll_ctl);
    return operation == EPOLL_CTL_ADD && refuse(LOOP, NULL, file) ? -1 : next(loop, operation, file, event);
}
int eventfd(unsigned value, int flags) { NEXT(eventfd); return refuse(LOOP, NULL, -1) ? -1 : next(value, flags); }
int timerfd_create(clockid_t clock, int flags) { NEXT(timerfd_create); return refuse(LOOP, NULL, -1) ? -1 : next(clock, flags); }
