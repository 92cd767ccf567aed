// SPDX-License-Identifier: Apache-2.0

// Preloaded into a program (ld.so(8), LD_PRELOAD): writes down each write(2) to a regular file below $WRITETRACE_FOLDER, so that a test can
// put the file together as it was after each of them. The trace, $WRITETRACE_FILE, is a row of records: "WTRC", length of the path, offset,
// length of the data (32, 64, 64 bits, as the machine has them), the path, the data.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static ssize_t (*real_write)(int, const void *, size_t);
static int trace = -1;
static char folder[4096];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void) {
    real_write = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    const char *file = getenv("WRITETRACE_FILE"), *below = getenv("WRITETRACE_FOLDER");
    if (!file || !below) return;
    snprintf(folder, sizeof folder, "%s", below);
    trace = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

static int path_of(int descriptor, char *path, size_t capacity) {
    struct stat status;
    if (fstat(descriptor, &status) || !S_ISREG(status.st_mode)) return 0;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t count = readlink(link, path, capacity - 1);
    if (count <= 0) return 0;
    path[count] = 0;
    return strncmp(path, folder, strlen(folder)) == 0;
}

ssize_t write(int descriptor, const void *data, size_t count) {
    char path[4096];
    if (trace < 0 || descriptor == trace || !path_of(descriptor, path, sizeof path)) return real_write(descriptor, data, count);
    pthread_mutex_lock(&lock);
    uint64_t offset = (uint64_t)lseek(descriptor, 0, SEEK_CUR);
    ssize_t done = real_write(descriptor, data, count);
    if (done > 0) {
        uint32_t path_length = (uint32_t)strlen(path);
        uint64_t length = (uint64_t)done;
        real_write(trace, "WTRC", 4);
        real_write(trace, &path_length, sizeof path_length);
        real_write(trace, &offset, sizeof offset);
        real_write(trace, &length, sizeof length);
        real_write(trace, path, path_length);
        real_write(trace, data, length);
    }
    pthread_mutex_unlock(&lock);
    return done;
}
