// Layout of keys and values in blocks of 64 slots: the only code that computes addresses of
// key/value storage. Fresh keys are packed into blocks once per layer, cache blocks are
// stored this way for good, so decode and later prefill read them without packing.
//
// One block holds 64 slots of one head, zero-filled where no row was written:
//   float32   K [key / 16][Dk'][16]        V [64][Dv']                        D' = D up to 16
//   bfloat16  K [key / 16][Dk' / 2][16][2] V [key / 32][Dv' / 16][16][16][2]  D' = D up to 32
// The bfloat16 V holds pairs of neighbouring keys: [key / 32][d / 16][key % 32 / 2][d % 16][key %
// 2]. Blocks of several heads lie side by side: [block][head], K and V in separate storage.
//
// Stateless values: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/span/plan.h"

namespace longview::kernels {

// kFloat16 is for devices: no call of a CPU takes it.
enum class DType : int32_t { kFloat32 = 0, kBFloat16 = 1, kFloat16 = 2 };

inline constexpr size_t SizeOf(DType dtype) { return dtype == DType::kFloat32 ? 4 : 2; }

// Addresses inside the blocks of one key/value storage.
//
// REQUIRES: 1 <= Dk, Dv <= kMaxHeadDim, kv_heads >= 1.
class KvLayout {
 public:
  KvLayout(DType dtype, int Dk, int Dv, int kv_heads);

  DType dtype() const { return dtype_; }
  int Dk() const { return dk_; }
  int Dv() const { return dv_; }
  int kv_heads() const { return kv_heads_; }
  int padded_dk() const { return padded_dk_; }
  int padded_dv() const { return padded_dv_; }

  // Bytes of one head's block of 64 slots; multiples of 64.
  size_t k_block_bytes() const { return kBlockSlots * padded_dk_ * SizeOf(dtype_); }
  size_t v_block_bytes() const { return kBlockSlots * padded_dv_ * SizeOf(dtype_); }

  // Byte offset of a block of `head` in K or V storage.
  size_t KBlock(int64_t block, int head) const {
    return static_cast<size_t>(block * kv_heads_ + head) * k_block_bytes();
  }
  size_t VBlock(int64_t block, int head) const {
    return static_cast<size_t>(block * kv_heads_ + head) * v_block_bytes();
  }

  // Element index of (slot, d) inside one head's block, 0 <= slot < 64.
  size_t KElement(int slot, int d) const;
  size_t VElement(int slot, int d) const;

  // Writes one row of one head into a block. `from` dtype may differ from the layout's;
  // float to bfloat16 rounds to nearest even. Padding columns are not touched.
  void WriteK(std::byte* block, int slot, const void* row, DType from) const;
  void WriteV(std::byte* block, int slot, const void* row, DType from) const;

  // Fills one head's block with zeros.
  void ClearK(std::byte* block) const;
  void ClearV(std::byte* block) const;

  // Copies block `from` to block `to`, all heads, inside one storage pair (copy-on-write).
  void CopyBlock(std::byte* k, std::byte* v, int64_t from, int64_t to) const;

  // Reads back one element as float; for references and tests.
  float ReadK(const std::byte* block, int slot, int d) const;
  float ReadV(const std::byte* block, int slot, int d) const;

 private:
  DType dtype_;
  int dk_, dv_, kv_heads_, padded_dk_, padded_dv_;
};

// Row of the source's tensor that fills `slot`, or -1 if no run of the map does.
int64_t SlotRow(const Plan& plan, const SlotMap& map, int32_t slot);

}  // namespace longview::kernels
