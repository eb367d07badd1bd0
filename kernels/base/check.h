// Aborting contracts: a breach is a bug of the caller, never bad user input.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace longview::kernels {

[[noreturn]] inline void CheckFailed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: KERNEL_CHECK failed: %s\n", file, line, expression);
  std::abort();
}

}  // namespace longview::kernels

#define KERNEL_CHECK(expression) \
  ((expression) ? (void)0 : ::longview::kernels::CheckFailed(#expression, __FILE__, __LINE__))
