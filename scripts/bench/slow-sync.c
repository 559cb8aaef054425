// A preload library (ld.so(8), LD_PRELOAD): every fsync and fdatasync of the process takes SLOW_SYNC_MS milliseconds
// more, as on a slower disk. Linux with glibc. Built and used by rates.mjs.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

// The time passes before, so that errno is that of the call.
static int syncLate(const char *name, int fd) {
  usleep(1000 * atoi(getenv("SLOW_SYNC_MS")));
  return ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
}

int fsync(int fd) { return syncLate("fsync", fd); }

int fdatasync(int fd) { return syncLate("fdatasync", fd); }
