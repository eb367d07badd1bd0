// Nothing can be created or written in /tmp and the like: every file that is opened to be created,
// and every write to a regular file, fails as on a full disk while the switch is on.
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "switch.h"

static int fails(void) {
  if (the_switch->value == 0) return 0;
  count_fault();
  errno = ENOSPC;
  return 1;
}

static int open_at(int folder, const char* path, int flags, mode_t mode) {
  if ((flags & (O_CREAT | O_TMPFILE)) != 0 && fails()) return -1;
  return (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define MODE(flags)                                            \
  ({                                                           \
    mode_t mode = 0;                                           \
    if (((flags) & (O_CREAT | O_TMPFILE)) != 0) {              \
      va_list rest;                                            \
      va_start(rest, flags);                                   \
      mode = va_arg(rest, mode_t);                             \
      va_end(rest);                                            \
    }                                                          \
    mode;                                                      \
  })

int open(const char* path, int flags, ...) { return open_at(AT_FDCWD, path, flags, MODE(flags)); }
int open64(const char* path, int flags, ...) { return open_at(AT_FDCWD, path, flags, MODE(flags)); }
int openat(int folder, const char* path, int flags, ...) {
  return open_at(folder, path, flags, MODE(flags));
}
int openat64(int folder, const char* path, int flags, ...) {
  return open_at(folder, path, flags, MODE(flags));
}

ssize_t write(int file, const void* bytes, size_t size) {
  struct stat info;
  if (the_switch->value != 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode) && fails()) {
    return -1;
  }
  return syscall(SYS_write, file, bytes, size);
}
