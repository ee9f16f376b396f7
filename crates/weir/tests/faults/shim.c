/* Fails calls that concern files in the folder FAULT_FOLDER, with the number FAULT_ERRNO.
 *
 * FAULT_CALLS   names of the calls that count, ",write,fsync,"; without it all but "thread" do
 * FAULT_AT      the first of them that fails, from 1
 * FAULT_COUNT   how many fail
 * FAULT_WHILE   in place of the last two: they fail while this file exists
 * FAULT_LOG     a file outside the folder to which the name of each call that counts is appended
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static long number(const char *name) { const char *text = getenv(name); return text ? atol(text) : 0; }

static int concerns(const char *path) {
    const char *folder = getenv("FAULT_FOLDER");
    return path && folder && !strncmp(path, folder, strlen(folder));
}

static int concerns_fd(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0) return 0;
    path[n] = 0;
    return concerns(path);
}

static void note(const char *call) {
    const char *log = getenv("FAULT_LOG");
    if (!log) return;
    int fd = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    char line[64];
    int n = snprintf(line, sizeof line, "%s\n", call);
    syscall(SYS_write, fd, line, n);
    syscall(SYS_close, fd);
}

static int counts(const char *call) {
    const char *calls = getenv("FAULT_CALLS");
    char name[64];
    snprintf(name, sizeof name, ",%s,", call);
    return !calls || strstr(calls, name);
}

static int fails(const char *call) {
    static long calls;
    if (!counts(call)) return 0;
    int before = errno;
    note(call);
    const char *flag = getenv("FAULT_WHILE");
    int is_bad;
    if (flag) {
        is_bad = !syscall(SYS_faccessat, AT_FDCWD, flag, F_OK);
    } else {
        long at = number("FAULT_AT"), n = __sync_add_and_fetch(&calls, 1);
        is_bad = at && n >= at && n < at + number("FAULT_COUNT");
    }
    errno = is_bad ? (int)number("FAULT_ERRNO") : before;
    return is_bad;
}

static int fails_fd(int fd, const char *call) { return concerns_fd(fd) && fails(call); }

static int fails_open(const char *path, int flags) {
    const char *call = flags & O_CREAT ? "create" : flags & O_ACCMODE ? "open to write" : "open";
    return concerns(path) && fails(call);
}

static int fails_sync(int fd) {
    struct stat found;
    int is_folder = !REAL(fstat)(fd, &found) && S_ISDIR(found.st_mode);
    return fails_fd(fd, is_folder ? "fsync folder" : "fsync");
}

#define OPEN(name, ...) \
    va_list list; va_start(list, flags); mode_t mode = va_arg(list, mode_t); va_end(list); \
    return fails_open(path, flags) ? -1 : REAL(name)(__VA_ARGS__, flags, mode)
int open(const char *path, int flags, ...) { OPEN(open, path); }
int open64(const char *path, int flags, ...) { OPEN(open64, path); }
int openat(int at, const char *path, int flags, ...) { OPEN(openat, at, path); }
int openat64(int at, const char *path, int flags, ...) { OPEN(openat64, at, path); }

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
    if (getenv("FAULT_CALLS") && fails("thread")) return (int)number("FAULT_ERRNO");
    return REAL(pthread_create)(thread, attributes, body, argument);
}
ssize_t read(int fd, void *data, size_t size) { return fails_fd(fd, "read") ? -1 : REAL(read)(fd, data, size); }
ssize_t write(int fd, const void *data, size_t size) {
    return fd > 2 && fails_fd(fd, "write") ? -1 : REAL(write)(fd, data, size);
}
ssize_t writev(int fd, const struct iovec *data, int count) {
    return fd > 2 && fails_fd(fd, "write") ? -1 : REAL(writev)(fd, data, count);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    return fails_fd(fd, "write") ? -1 : REAL(pwrite)(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    return fails_fd(fd, "write") ? -1 : REAL(pwrite64)(fd, data, size, at);
}
ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t size, unsigned flags) {
    return fails_fd(to, "write") ? -1 : REAL(copy_file_range)(from, from_at, to, to_at, size, flags);
}
off_t lseek(int fd, off_t to, int from) { return fails_fd(fd, "lseek") ? -1 : REAL(lseek)(fd, to, from); }
off64_t lseek64(int fd, off64_t to, int from) { return fails_fd(fd, "lseek") ? -1 : REAL(lseek64)(fd, to, from); }
int ftruncate(int fd, off_t size) { return fails_fd(fd, "ftruncate") ? -1 : REAL(ftruncate)(fd, size); }
int ftruncate64(int fd, off64_t size) { return fails_fd(fd, "ftruncate") ? -1 : REAL(ftruncate64)(fd, size); }
int fsync(int fd) { return fails_sync(fd) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return fails_fd(fd, "fdatasync") ? -1 : REAL(fdatasync)(fd); }
int flock(int fd, int what) { return fails_fd(fd, "flock") ? -1 : REAL(flock)(fd, what); }
int fchmod(int fd, mode_t mode) { return fails_fd(fd, "fchmod") ? -1 : REAL(fchmod)(fd, mode); }
int fchown(int fd, uid_t user, gid_t group) { return fails_fd(fd, "fchown") ? -1 : REAL(fchown)(fd, user, group); }
int fstat(int fd, struct stat *to) { return fails_fd(fd, "stat") ? -1 : REAL(fstat)(fd, to); }
int fstat64(int fd, struct stat64 *to) { return fails_fd(fd, "stat") ? -1 : REAL(fstat64)(fd, to); }
int statx(int fd, const char *path, int flags, unsigned mask, struct statx *to) {
    /* It is null where std asks whether the kernel knows this call, although glibc says it never is. */
    const char *volatile named = path;
    if (!named) return REAL(statx)(fd, path, flags, mask, to);
    int is_concerned = *path ? concerns(path) : concerns_fd(fd);
    return is_concerned && fails("stat") ? -1 : REAL(statx)(fd, path, flags, mask, to);
}
int rename(const char *from, const char *to) { return concerns(to) && fails("rename") ? -1 : REAL(rename)(from, to); }
int renameat(int at, const char *from, int to_at, const char *to) {
    return concerns(to) && fails("rename") ? -1 : REAL(renameat)(at, from, to_at, to);
}
int renameat2(int at, const char *from, int to_at, const char *to, unsigned flags) {
    return concerns(to) && fails("renameat2") ? -1 : REAL(renameat2)(at, from, to_at, to, flags);
}
int link(const char *from, const char *to) { return concerns(to) && fails("link") ? -1 : REAL(link)(from, to); }
int linkat(int at, const char *from, int to_at, const char *to, int flags) {
    return concerns(to) && fails("link") ? -1 : REAL(linkat)(at, from, to_at, to, flags);
}
int unlink(const char *path) { return concerns(path) && fails("unlink") ? -1 : REAL(unlink)(path); }
int unlinkat(int at, const char *path, int flags) {
    return concerns(path) && fails("unlink") ? -1 : REAL(unlinkat)(at, path, flags);
}
