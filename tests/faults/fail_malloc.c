// Allocations of at least as many bytes as the switch says fail; 0: none.
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>

#include "switch.h"

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

static int fails(size_t bytes) {
  const int64_t least = the_switch->value;
  if (least == 0 || bytes < (size_t)least) return 0;
  count_fault();
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t bytes) { return fails(bytes) ? 0 : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) {
  return fails(count * bytes) ? 0 : __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) { return fails(bytes) ? 0 : __libc_realloc(old, bytes); }
void* memalign(size_t alignment, size_t bytes) {
  return fails(bytes) ? 0 : __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  void* memory = memalign(alignment, bytes);
  if (memory == 0) return ENOMEM;
  *out = memory;
  return 0;
}
