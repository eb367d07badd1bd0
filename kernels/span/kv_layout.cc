#include "kernels/span/kv_layout.h"

#include <algorithm>
#include <cstring>

#include "kernels/base/bfloat16.h"
#include "kernels/base/check.h"

namespace longview::kernels {
namespace {

constexpr int kLanes = 16;  // Keys of a K panel, columns of a V panel.

int Pad(int d, DType dtype) {
  const int to = dtype == DType::kFloat32 ? 16 : 32;
  return (d + to - 1) / to * to;
}

float Load(const void* row, DType from, int d) {
  if (from == DType::kFloat32) return static_cast<const float*>(row)[d];
  return BFloat16ToFloat(static_cast<const uint16_t*>(row)[d]);
}

uint16_t LoadBFloat16(const void* row, DType from, int d) {
  if (from == DType::kBFloat16) return static_cast<const uint16_t*>(row)[d];
  return FloatToBFloat16(static_cast<const float*>(row)[d]);
}

float ReadElement(const std::byte* block, DType dtype, size_t index) {
  if (dtype == DType::kFloat32) return reinterpret_cast<const float*>(block)[index];
  return BFloat16ToFloat(reinterpret_cast<const uint16_t*>(block)[index]);
}

}  // namespace

KvLayout::KvLayout(DType dtype, int Dk, int Dv, int kv_heads)
    : dtype_(dtype),
      dk_(Dk),
      dv_(Dv),
      kv_heads_(kv_heads),
      padded_dk_(Pad(Dk, dtype)),
      padded_dv_(Pad(Dv, dtype)) {
  KERNEL_CHECK(Dk >= 1 && Dk <= kMaxHeadDim);
  KERNEL_CHECK(Dv >= 1 && Dv <= kMaxHeadDim);
  KERNEL_CHECK(kv_heads >= 1);
}

size_t KvLayout::KElement(int slot, int d) const {
  const size_t panel = static_cast<size_t>(slot / kLanes) * padded_dk_ * kLanes;
  const int lane = slot % kLanes;
  if (dtype_ == DType::kFloat32) return panel + d * kLanes + lane;
  return panel + d / 2 * (2 * kLanes) + 2 * lane + d % 2;
}

size_t KvLayout::VElement(int slot, int d) const {
  if (dtype_ == DType::kFloat32) return static_cast<size_t>(slot) * padded_dv_ + d;
  const size_t half = static_cast<size_t>(slot / 32) * padded_dv_ * 32;
  const size_t panel = static_cast<size_t>(d / kLanes) * (32 * kLanes);
  return half + panel + slot % 32 / 2 * (2 * kLanes) + 2 * (d % kLanes) + slot % 2;
}

void KvLayout::WriteK(std::byte* block, int slot, const void* row, DType from) const {
  if (dtype_ == DType::kFloat32) {
    float* to = reinterpret_cast<float*>(block) + KElement(slot, 0);
    for (int d = 0; d < dk_; ++d) to[d * kLanes] = Load(row, from, d);
    return;
  }
  uint16_t* to = reinterpret_cast<uint16_t*>(block) + KElement(slot, 0);
  for (int d = 0; d < dk_; ++d) to[d / 2 * (2 * kLanes) + d % 2] = LoadBFloat16(row, from, d);
}

void KvLayout::WriteV(std::byte* block, int slot, const void* row, DType from) const {
  if (dtype_ == DType::kFloat32) {
    float* to = reinterpret_cast<float*>(block) + VElement(slot, 0);
    for (int d = 0; d < dv_; ++d) to[d] = Load(row, from, d);
    return;
  }
  uint16_t* to = reinterpret_cast<uint16_t*>(block) + VElement(slot, 0);
  for (int d = 0; d < dv_; ++d) {
    to[d / kLanes * (32 * kLanes) + 2 * (d % kLanes)] = LoadBFloat16(row, from, d);
  }
}

void KvLayout::ClearK(std::byte* block) const { std::memset(block, 0, k_block_bytes()); }
void KvLayout::ClearV(std::byte* block) const { std::memset(block, 0, v_block_bytes()); }

void KvLayout::CopyBlock(std::byte* k, std::byte* v, int64_t from, int64_t to) const {
  std::memcpy(k + KBlock(to, 0), k + KBlock(from, 0), kv_heads_ * k_block_bytes());
  std::memcpy(v + VBlock(to, 0), v + VBlock(from, 0), kv_heads_ * v_block_bytes());
}

float KvLayout::ReadK(const std::byte* block, int slot, int d) const {
  return ReadElement(block, dtype_, KElement(slot, d));
}

float KvLayout::ReadV(const std::byte* block, int slot, int d) const {
  return ReadElement(block, dtype_, VElement(slot, d));
}

int64_t SlotRow(const Plan& plan, const SlotMap& map, int32_t slot) {
  const auto first = plan.runs.begin() + map.run0;
  const auto last = first + map.runs;
  auto after = std::upper_bound(first, last, slot,
                                [](int32_t s, const SlotRun& run) { return s < run.slot0; });
  if (after == first) return -1;
  const SlotRun& run = *std::prev(after);
  const int32_t i = slot - run.slot0;
  return i < run.rows ? run.row0 + static_cast<int64_t>(i) * run.row_step : -1;
}

}  // namespace longview::kernels
