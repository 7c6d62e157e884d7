/* Loaded before the C library: calls that read and write do less than was asked for, are interrupted, or cannot proceed
   at once. PERFCONV_FAULT says which. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static __thread unsigned turn;

static int is(const char *fault) {
    const char *given = getenv("PERFCONV_FAULT");
    return given && !strcmp(given, fault);
}

/* Whether this call fails. */
static int fails(int fd) {
    struct stat status;
    if (is("interrupted") && ++turn % 3 == 0) {
        errno = EINTR;
        return 1;
    }
    if (is("unavailable") && !fstat(fd, &status) && S_ISFIFO(status.st_mode) && ++turn % 4 == 0) {
        errno = EAGAIN;
        return 1;
    }
    return 0;
}

/* How many bytes this call reads or writes at most. */
static size_t some(size_t size) {
    size_t most;
    if (!is("short"))
        return size;
    most = 1 + (++turn * 389u) % 997;
    return size < most ? size : most;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t read(int fd, void *data, size_t size) {
    return fails(fd) ? -1 : REAL(read)(fd, data, some(size));
}

ssize_t write(int fd, const void *data, size_t size) {
    return fails(fd) ? -1 : REAL(write)(fd, data, some(size));
}

ssize_t pread64(int fd, void *data, size_t size, off64_t at) {
    return fails(fd) ? -1 : REAL(pread64)(fd, data, some(size), at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    return fails(fd) ? -1 : REAL(pwrite64)(fd, data, some(size), at);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (count > 0 && is("short"))
        return write(fd, parts[0].iov_base, parts[0].iov_len);
    return fails(fd) ? -1 : REAL(writev)(fd, parts, count);
}

ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *there, size_t size, unsigned flags) {
    return fails(to) ? -1 : REAL(copy_file_range)(from, at, to, there, some(size), flags);
}
