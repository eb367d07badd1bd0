// The switch that a test holds (preload.py): {value, faults}, or zeros without one.
#pragma once

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct fault_switch {
  volatile int64_t value;
  int64_t faults;
};

static struct fault_switch no_switch;
static struct fault_switch* the_switch = &no_switch;

// System calls alone: the library's functions may be the ones that fail.
__attribute__((constructor)) static void find_switch(void) {
  const char* path = getenv("LONGVIEW_FAULT_SWITCH");
  if (path == 0) return;
  const int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR, 0);
  if (file < 0) return;
  void* page = mmap(0, sizeof(struct fault_switch), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  syscall(SYS_close, file);
  if (page != MAP_FAILED) the_switch = page;
}

static void count_fault(void) { __atomic_fetch_add(&the_switch->faults, 1, __ATOMIC_RELAXED); }
