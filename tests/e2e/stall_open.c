// Opening a file whose path holds "endless" and ends in ".safetensors" never returns.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

int open(const char* path, int flags, ...) {
  static const char kEnd[] = ".safetensors";
  const size_t length = strlen(path), end = sizeof(kEnd) - 1;
  if (length > end && strcmp(path + length - end, kEnd) == 0 && strstr(path, "endless") != 0) {
    for (;;) pause();
  }
  va_list list;
  va_start(list, flags);
  const int mode = va_arg(list, int);
  va_end(list);
  int (*real)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
  return real(path, flags, mode);
}

int open64(const char* path, int flags, ...) __attribute__((alias("open")));
