#include "models/checkpoint/convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "models/finite.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

constexpr size_t kPieceBytes = size_t{256} << 10;

uint16_t Load16(const std::byte* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

double LoadDouble(const std::byte* at) {
  double value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

float FromBFloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// Scaling by 2^112 rebiases the exponent and normalises subnormals in one exact step; infinity
// and NaN keep their all-ones exponent instead.
float FromFloat16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t magnitude = uint32_t{bits & 0x7fffu} << 13;
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const bool special = (bits & 0x7c00u) == 0x7c00u;
  return std::bit_cast<float>(sign | (special ? magnitude | 0x7f800000u : finite));
}

void Widen(DType dtype, const std::byte* source, std::span<float> out) {
  if (out.empty()) return;
  if (dtype == DType::kF32) {
    std::memcpy(out.data(), source, out.size_bytes());
  } else if (dtype == DType::kBF16) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = FromBFloat16(Load16(source + 2 * i));
  } else if (dtype == DType::kF64) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(LoadDouble(source + 8 * i));
  } else {
    for (size_t i = 0; i < out.size(); ++i) out[i] = FromFloat16(Load16(source + 2 * i));
  }
}

// INVALID_ARGUMENT if one of the values, the elements from `first` on, is NaN or infinite.
absl::Status CheckFinite(const TensorView& tensor, int64_t first, std::span<const float> values) {
  if (AllFinite(values)) return absl::OkStatus();
  const auto at =
      std::find_if(values.begin(), values.end(), [](float x) { return !std::isfinite(x); });
  return absl::InvalidArgumentError(
      absl::StrCat(tensor.file == nullptr ? "" : absl::StrCat(tensor.file->path(), ": "),
                   "tensor \"", tensor.name, "\" ", ShapeText(tensor.shape), ": element ",
                   first + (at - values.begin()), " is ", *at, "; weights must be finite numbers"));
}

}  // namespace

bool IsFloatWeight(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 ||
         dtype == DType::kF64;
}

void CopyFloat32(const TensorView& tensor, int64_t first, std::span<float> out) {
  Widen(tensor.dtype, tensor.data + first * DTypeBits(tensor.dtype) / 8, out);
}

std::vector<float> ToFloat32(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  CopyFloat32(tensor, 0, values);
  return values;
}

absl::Status ReadFloat32(const TensorView& tensor, int64_t first, std::span<float> out) {
  const size_t element = static_cast<size_t>(DTypeBits(tensor.dtype)) / 8;
  const uint64_t begin = static_cast<uint64_t>(first) * element;
  if (tensor.dtype == DType::kF32) {
    if (absl::Status status = tensor.Read(begin, std::as_writable_bytes(out)); !status.ok())
      return status;
    return CheckFinite(tensor, first, out);
  }
  // In pieces that stay in the cache.
  std::vector<std::byte> piece(std::min(kPieceBytes, out.size() * element));
  for (size_t done = 0; done < out.size();) {
    const size_t count = std::min(piece.size() / element, out.size() - done);
    const std::span<std::byte> bytes(piece.data(), count * element);
    if (absl::Status status = tensor.Read(begin + done * element, bytes); !status.ok())
      return status;
    Widen(tensor.dtype, bytes.data(), out.subspan(done, count));
    done += count;
  }
  return CheckFinite(tensor, first, out);
}

absl::Status CheckFinite(const TensorView& tensor) {
  std::vector<float> piece;
  const int64_t elements = tensor.elements(), step = kPieceBytes / sizeof(float);
  for (int64_t first = 0; first < elements; first += step) {
    piece.resize(static_cast<size_t>(std::min(step, elements - first)));
    CopyFloat32(tensor, first, piece);
    RETURN_IF_ERROR(CheckFinite(tensor, first, piece));
  }
  return absl::OkStatus();
}

}  // namespace longview::models
