// A preload library (ld.so(8), LD_PRELOAD): every fsync and fdatasync of the process takes some time more, as on a
// slower disk. Linux with glibc. Built and used by slow-sync.mjs.
//
//   SLOW_SYNC_MS  how much more, in milliseconds

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static struct timespec delay;

__attribute__((constructor)) static void start(void) {
  const char *text = getenv("SLOW_SYNC_MS");
  long milliseconds = text == NULL ? 0 : atol(text);
  delay.tv_sec = milliseconds / 1000;
  delay.tv_nsec = milliseconds % 1000 * 1000000;
}

typedef int (*sync_type)(int);

// The time passes before, so that errno is that of the call.
static int syncLate(const char *name, int fd) {
  nanosleep(&delay, NULL);
  return ((sync_type)dlsym(RTLD_NEXT, name))(fd);
}

int fsync(int fd) { return syncLate("fsync", fd); }

int fdatasync(int fd) { return syncLate("fdatasync", fd); }
