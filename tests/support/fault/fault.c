/* Fails chosen calls that write to chosen files. Loaded with LD_PRELOAD; does nothing until it is armed.
 *
 * fault_arm(part, at, mode, sticky): from now on count the write-family calls on files whose path holds `part`; at
 * the at-th (from 1; 0 = only count) do what `mode` says: KILL the process before the call, HALF-write and kill it,
 * or fail with that errno; `sticky`: every later one fails too. fault_count() says how many calls were seen.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { KILL = -1, HALF = -2 };

static char wanted[256];
static long at, seen;
static int mode, sticky, armed;

void fault_arm(const char *part, long when, int what, int keeps_failing)
{
    snprintf(wanted, sizeof wanted, "%s", part);
    at = when;
    seen = 0;
    mode = what;
    sticky = keeps_failing;
    armed = 1;
}

void fault_disarm(void) { armed = 0; }

long fault_count(void) { return seen; }

static int is_wanted_path(const char *path) { return path && strstr(path, wanted) != NULL; }

static int is_wanted(int descriptor)
{
    char link[64], path[1024];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0)
        return 0;
    path[length] = 0;
    return is_wanted_path(path);
}

/* Whether this call is to fail; kills the process where that is asked for. */
static int is_hit(int concerned, int *half)
{
    if (!armed || !concerned)
        return 0;
    seen++;
    if (at == 0 || (sticky ? seen < at : seen != at))
        return 0;
    if (mode == HALF && half) {
        *half = 1;
        return 1;
    }
    if (mode == KILL || mode == HALF)
        kill(getpid(), SIGKILL);
    errno = mode;
    return 1;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

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
    if (armed && is_hit(is_wanted(descriptor), &half)) {
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

int unlink(const char *path)
{
    return is_hit(is_wanted_path(path), NULL) ? -1 : NEXT(unlink)(path);
}
