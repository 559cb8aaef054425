// A preload library (ld.so(8), LD_PRELOAD) that makes the Nth write, sync or truncation of a database's files fail. It
// is told when and how through a file that it maps, so that each call of a running process can be hit in turn; see
// faults.ts, which has the same layout. Linux with glibc.
//
//   FAULT_PATH     how the names of the files begin; the lock beside the database is left alone
//   FAULT_CONTROL  the file

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct control {
  int64_t armed;    // which call fails, from 1; 0 for none
  int64_t calls;    // since it was armed
  int64_t faults;   // that were made
  int32_t error;    // errno; 0 for a write that is cut short instead
  int32_t lasting;  // whether all calls after the Nth fail too
  int32_t kind;     // of the first call that failed: see enum kind
  int32_t padding;
};

enum kind { WRITE = 1, SYNC = 2, TRUNCATE = 3 };

static struct control *control;
static const char *path;

__attribute__((constructor)) static void start(void) {
  const char *name = getenv("FAULT_CONTROL");
  path = getenv("FAULT_PATH");
  if (name == NULL || path == NULL) return;
  int fd = open(name, O_RDWR | O_CLOEXEC);
  if (fd == -1) return;
  void *mapped = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped != MAP_FAILED) control = mapped;
  close(fd);
}

static int isOfDatabase(int fd) {
  char link[40], name[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, name, sizeof name - 1);
  if (length <= 0) return 0;
  name[length] = 0;
  size_t prefix = strlen(path);
  return strncmp(name, path, prefix) == 0 && strcmp(name + prefix, "-lock") != 0;
}

// Whether this call is to fail.
static int isDue(int fd, enum kind kind) {
  if (control == NULL) return 0;
  int saved = errno;
  int64_t armed = __atomic_load_n(&control->armed, __ATOMIC_SEQ_CST);
  int due = 0;
  if (armed > 0 && isOfDatabase(fd)) {
    int64_t call = __atomic_add_fetch(&control->calls, 1, __ATOMIC_SEQ_CST);
    due = control->lasting ? call >= armed : call == armed;
  }
  if (due && __atomic_add_fetch(&control->faults, 1, __ATOMIC_SEQ_CST) == 1) control->kind = kind;
  errno = saved;
  return due;
}

#define NEXT(type, name) \
  static type next; \
  if (next == NULL) next = (type)dlsym(RTLD_NEXT, name)

typedef ssize_t (*pwrite64_type)(int, const void *, size_t, off64_t);
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
  NEXT(pwrite64_type, "pwrite64");
  if (!isDue(fd, WRITE)) return next(fd, bytes, length, offset);
  if (control->error == 0) return length < 2 ? 0 : next(fd, bytes, length / 2, offset);
  errno = control->error;
  return -1;
}

typedef ssize_t (*write_type)(int, const void *, size_t);
ssize_t write(int fd, const void *bytes, size_t length) {
  NEXT(write_type, "write");
  if (!isDue(fd, WRITE)) return next(fd, bytes, length);
  if (control->error == 0) return length < 2 ? 0 : next(fd, bytes, length / 2);
  errno = control->error;
  return -1;
}

typedef int (*sync_type)(int);
int fsync(int fd) {
  NEXT(sync_type, "fsync");
  if (!isDue(fd, SYNC) || control->error == 0) return next(fd);
  errno = control->error;
  return -1;
}

int fdatasync(int fd) {
  NEXT(sync_type, "fdatasync");
  if (!isDue(fd, SYNC) || control->error == 0) return next(fd);
  errno = control->error;
  return -1;
}

typedef int (*ftruncate64_type)(int, off64_t);
int ftruncate64(int fd, off64_t length) {
  NEXT(ftruncate64_type, "ftruncate64");
  if (!isDue(fd, TRUNCATE) || control->error == 0) return next(fd, length);
  errno = control->error;
  return -1;
}
