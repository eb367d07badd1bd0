// Element types of safetensors files.
#pragma once

#include <optional>
#include <string_view>

namespace longview::models {

enum class DType {
  kBool,
  kU8,
  kI8,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kF64,
  kI64,
  kU64,
  kC64,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF6E2M3,
  kF6E3M2,
  kF4,
};

std::string_view DTypeName(DType dtype);  // "BF16"
std::optional<DType> ParseDType(std::string_view name);
int DTypeBits(DType dtype);  // 4 for F4, 64 for C64.

}  // namespace longview::models
