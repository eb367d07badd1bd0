// The header of a safetensors file: which tensors lie where.
//
// Layout: 8 bytes little-endian header length K, K bytes of JSON, then the data section. The
// format's rules are checked in full, because the offsets come from outside: K at most
// 100,000,000; no duplicate keys; known dtypes; overflow-safe shapes; the tensors, ordered by
// offset, tile the data section without hole or overlap up to the last byte of the file.
// Thread-safe: a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/dtype.h"

namespace longview::models {

struct TensorEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // Empty = scalar.
  uint64_t begin = 0;          // Byte offsets in the file, end exclusive.
  uint64_t end = 0;
};

inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

inline constexpr uint64_t kSafetensorsLength = 8;  // Bytes of the header's length, which is first.

// How many bytes of a file ParseSafetensorsHeader reads, by the first kSafetensorsLength of them.
uint64_t SafetensorsHeaderEnd(std::span<const std::byte> length);

// `file` is the whole file of `file_bytes`, or as much of it as SafetensorsHeaderEnd says. Entries
// come ordered by offset. INVALID_ARGUMENT messages begin with `origin` and name the tensor where
// there is one.
absl::StatusOr<std::vector<TensorEntry>> ParseSafetensorsHeader(std::span<const std::byte> file,
                                                                uint64_t file_bytes,
                                                                std::string_view origin);

}  // namespace longview::models
