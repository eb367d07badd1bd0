// Shared by all fuzz targets. A target is one file that defines LLVMFuzzerTestOneInput: bytes
// from outside go into one reader, and whatever it accepts must keep the reader's promises.
//
// Targets run two ways: libFuzzer searches for inputs (-DLONGVIEW_FUZZ=ON, tests/run.sh --fuzz),
// and replay_test.cc runs them on tests/fuzz/corpus/<target>/ in every test run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace longview::fuzz {

[[noreturn]] inline void PromiseBroken(const char* promise, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: not kept: %s\n", file, line, promise);
  std::abort();
}

inline std::string_view AsText(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// The first byte, which picks one of several readers, and the rest. {0, ""} of nothing.
inline std::pair<uint8_t, std::string_view> SplitKind(std::string_view input) {
  if (input.empty()) return {0, input};
  return {static_cast<uint8_t>(input[0]), input.substr(1)};
}

// The text before and after the first NUL byte, which no JSON text holds.
inline std::pair<std::string_view, std::string_view> SplitAtNul(std::string_view input) {
  const size_t at = input.find('\0');
  if (at == input.npos) return {input, {}};
  return {input.substr(0, at), input.substr(at + 1)};
}

}  // namespace longview::fuzz

// Ends the process, which libFuzzer and GoogleTest both report.
#define FUZZ_PROMISE(expression) \
  ((expression) ? (void)0 : ::longview::fuzz::PromiseBroken(#expression, __FILE__, __LINE__))
