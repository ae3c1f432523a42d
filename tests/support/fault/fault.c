/* Fails chosen calls that write to chosen files. Loaded with LD_PRELOAD; does nothing until it is armed.
 *
 * fault_arm(part, at, mode, sticky): from now on count the write-family calls on files whose path holds `part`; at
 * the at-th (from 1; 0 = only count) do what `mode` says: KILL the process before the call, HALF-write and kill it,
 * or fail with that errno; `sticky`: every later one fails too. fault_count() says how many calls were seen.
 *
 * A process that finds FAULT_TALLY (a file of two longs: calls seen, process that was hit) in its environment is armed
 * from its start, with FAULT_PART, FAULT_AT, FAULT_MODE and FAULT_STICKY: it and all that it starts count together.
 *
 * The family: write, pwrite, fsync, fdatasync, ftruncate, rename, unlink, mkdir, rmdir, and an open that makes a file.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { KILL = -1, HALF = -2 };

static char wanted[512];
static long at;
static int mode, sticky, armed;
static long own_tally[2];
static long *tally = own_tally; /* calls seen; the process that was hit first */

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void fault_arm(const char *part, long when, int what, int keeps_failing)
{
    snprintf(wanted, sizeof wanted, "%s", part);
    at = when;
    tally[0] = tally[1] = 0;
    mode = what;
    sticky = keeps_failing;
    armed = 1;
}

void fault_disarm(void) { armed = 0; }

long fault_count(void) { return tally[0]; }

static long number_of(const char *name) { return getenv(name) ? atol(getenv(name)) : 0; }

__attribute__((constructor)) static void arm_from_environment(void)
{
    const char *shared = getenv("FAULT_TALLY"), *part = getenv("FAULT_PART");
    if (!shared || !part)
        return;
    int descriptor = NEXT(open)(shared, O_RDWR | O_CLOEXEC);
    void *memory = descriptor < 0 ? MAP_FAILED : mmap(NULL, sizeof own_tally, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED)
        abort();
    close(descriptor);
    tally = memory;
    snprintf(wanted, sizeof wanted, "%s", part);
    at = number_of("FAULT_AT");
    mode = number_of("FAULT_MODE");
    sticky = number_of("FAULT_STICKY");
    armed = 1;
}

static int is_wanted_path(const char *path) { return path && strstr(path, wanted) != NULL; }

static int is_wanted(int descriptor)
{
    char link[64], path[1024];
    if (!armed)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0)
        return 0;
    path[length] = 0;
    return is_wanted_path(path);
}

/* A name in a directory that is open; AT_FDCWD: a path like any other. */
static int is_wanted_in(int directory, const char *name)
{
    return is_wanted_path(name) || (directory != AT_FDCWD && is_wanted(directory));
}

/* Whether this call is to fail; kills the process where that is asked for. */
static int is_hit(int concerned, int *half)
{
    if (!armed || !concerned)
        return 0;
    long seen = __sync_add_and_fetch(&tally[0], 1);
    if (at == 0 || (sticky ? seen < at : seen != at))
        return 0;
    __sync_bool_compare_and_swap(&tally[1], 0, (long)getpid());
    if (mode == HALF && half) {
        *half = 1;
        return 1;
    }
    if (mode == KILL || mode == HALF)
        kill(getpid(), SIGKILL);
    errno = mode;
    return 1;
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset)
{
    int half = 0;
    if (is_hit(is_wanted(descriptor), &half)) {
        if (!half)
            return -1;
        NEXT(pwrite64)(descriptor, bytes, count / 2, offset);
        kill(getpid(), SIGKILL);
    }
    return NEXT(pwrite64)(descriptor, bytes, count, offset);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset)
{
    return pwrite64(descriptor, bytes, count, offset);
}

ssize_t write(int descriptor, const void *bytes, size_t count)
{
    int half = 0;
    if (is_hit(is_wanted(descriptor), &half)) {
        if (!half)
            return -1;
        NEXT(write)(descriptor, bytes, count / 2);
        kill(getpid(), SIGKILL);
    }
    return NEXT(write)(descriptor, bytes, count);
}

int fsync(int descriptor) { return is_hit(is_wanted(descriptor), NULL) ? -1 : NEXT(fsync)(descriptor); }

int fdatasync(int descriptor) { return is_hit(is_wanted(descriptor), NULL) ? -1 : NEXT(fdatasync)(descriptor); }

int ftruncate64(int descriptor, off64_t length)
{
    return is_hit(is_wanted(descriptor), NULL) ? -1 : NEXT(ftruncate64)(descriptor, length);
}

int ftruncate(int descriptor, off_t length) { return ftruncate64(descriptor, length); }

int rename(const char *from, const char *to)
{
    return is_hit(is_wanted_path(from) || is_wanted_path(to), NULL) ? -1 : NEXT(rename)(from, to);
}

int unlink(const char *path) { return is_hit(is_wanted_path(path), NULL) ? -1 : NEXT(unlink)(path); }

int unlinkat(int directory, const char *name, int flags)
{
    return is_hit(is_wanted_in(directory, name), NULL) ? -1 : NEXT(unlinkat)(directory, name, flags);
}

int mkdir(const char *path, mode_t bits) { return is_hit(is_wanted_path(path), NULL) ? -1 : NEXT(mkdir)(path, bits); }

int rmdir(const char *path) { return is_hit(is_wanted_path(path), NULL) ? -1 : NEXT(rmdir)(path); }

/* An open counts where it makes a file. */
static int makes_one(const char *path, int flags)
{
    return armed && (flags & O_CREAT) && is_wanted_path(path) && access(path, F_OK) != 0;
}

#define BITS_OF(flags)                                                                                                 \
    mode_t bits = 0;                                                                                                   \
    if (flags & (O_CREAT | O_TMPFILE)) {                                                                               \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        bits = va_arg(rest, mode_t);                                                                                   \
        va_end(rest);                                                                                                  \
    }

int open(const char *path, int flags, ...)
{
    BITS_OF(flags)
    return is_hit(makes_one(path, flags), NULL) ? -1 : NEXT(open)(path, flags, bits);
}

int open64(const char *path, int flags, ...)
{
    BITS_OF(flags)
    return is_hit(makes_one(path, flags), NULL) ? -1 : NEXT(open64)(path, flags, bits);
}

int openat(int directory, const char *path, int flags, ...)
{
    BITS_OF(flags)
    return is_hit(makes_one(path, flags), NULL) ? -1 : NEXT(openat)(directory, path, flags, bits);
}

int openat64(int directory, const char *path, int flags, ...)
{
    BITS_OF(flags)
    return is_hit(makes_one(path, flags), NULL) ? -1 : NEXT(openat64)(directory, path, flags, bits);
}
