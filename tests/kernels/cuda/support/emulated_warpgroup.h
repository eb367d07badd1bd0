// span_warpgroup.h's machine on a CPU: both roles of a thread block, taking turns, with barriers,
// boxes, swizzles, matrix descriptors and fragments as the PTX manual gives them.
//
// Stricter than a GPU: shared memory is exactly as large as asked for and starts as NaNs; copies
// spoil what they will overwrite when they are asked for; products read shared memory and registers
// as early as they may (rising) or as late (falling); what threads wrote and nobody fenced may not
// be multiplied; two roles that wait for each other are a failure, not a hang.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "kernels/cuda/base/program.h"
#include "kernels/cuda/span/span_warpgroup.h"
#include "tests/kernels/cuda/support/emulated_barriers.h"
#include "tests/kernels/cuda/support/emulated_machine.h"

namespace longview::kernels::cuda::testing {

// Shared memory of one block: bytes, and which 16-byte pieces threads wrote since the last fence
// between them and the units that multiply.
class EmulatedShared {
 public:
  explicit EmulatedShared(int bytes)
      : memory_(bytes / 2, kSpoilt), written_(bytes / 16, uint8_t{0}) {}

  // 2 bytes at an offset.
  void Write(int at, uint16_t value) {
    ASSERT_TRUE(Holds(at, 2)) << "outside";
    memory_[at / 2] = value;
  }
  // Writes in the way of a thread: products may read it after a fence only.
  void WriteByThread(int at, uint16_t value) {
    Write(at, value);
    if (Holds(at, 2)) written_[at / 16] = 1;
  }
  void Spoil(int at, int bytes) {
    for (int i = 0; i < bytes; i += 2) Write(at + i, kSpoilt);
  }
  void Fence() { written_.assign(written_.size(), uint8_t{0}); }

  // Reads in the way of a product; `wrong` says why, if that must not be read.
  uint16_t Read(int64_t at, const char*& wrong) const {
    if (!Holds(at, 2)) {
      wrong = "outside of shared memory";
      return kSpoilt;
    }
    if (written_[at / 16] != 0) wrong = "written by threads, not fenced";
    return memory_[at / 2];
  }

 private:
  static constexpr uint16_t kSpoilt = 0x7fff;

  bool Holds(int64_t at, int bytes) const {
    return at >= 0 && at + bytes <= static_cast<int64_t>(written_.size()) * 16;
  }

  std::vector<uint16_t> memory_;
  std::vector<uint8_t> written_;
};

// Eight pieces of 16 bytes change places by which of eight rows of 128 bytes they lie in: bits 4 to
// 6 of an address by bits 7 to 9.
inline int64_t Swizzled(int64_t address) { return address ^ ((address >> 7 & 7) << 4); }

// Its copies may land when it is done.
class EmulatedLoader {
 public:
  EmulatedLoader(EmulatedShared& shared, EmulatedBarriers& barriers, const CallBoxes& boxes,
                 ThreadOrder order)
      : shared_(shared), barriers_(barriers), boxes_(boxes), order_(order) {}

  static inline std::atomic<int64_t> boxes_asked = 0;  // By all loaders so far.

  ~EmulatedLoader() { EXPECT_TRUE(awaited_ && pieces_.empty()) << "gone before its pieces came"; }

  template <class F>
  void Each(F&& body) const {
    for (int i = 0; i < 32; ++i) body(order_ == ThreadOrder::kRising ? i : 31 - i);
  }
  template <class Test>
  bool Every(Test&& test) const {
    bool every = true;
    for (int lane = 0; lane < 32; ++lane) every &= test(lane);
    return every;
  }
  void Await(int barrier, uint32_t parity) { barriers_.Await(barrier, parity); }

  void CopyBox(int to, int box, int column, int head, int row, int barrier) {
    ASSERT_TRUE(box >= 0 && box < boxes_.used);
    const TensorBox& tensor = boxes_.boxes[box];
    EXPECT_EQ(to % kSwizzleBytes, 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data) % 16, 0u);
    EXPECT_EQ(tensor.head_stride % 16, 0);
    EXPECT_EQ(tensor.row_stride % 16, 0);
    EXPECT_TRUE(tensor.head_stride > 0 && tensor.row_stride > 0);
    EXPECT_TRUE(row >= 0 && head >= 0 && head < tensor.heads);
    ++boxes_asked;
    shared_.Spoil(to, kPanelBytes);
    barriers_.AddCopy(barrier, kPanelBytes, 0, [=, &shared = shared_] {
      for (int r = 0; r < kBlockSlots; ++r) {
        const auto* from = reinterpret_cast<const uint16_t*>(
            static_cast<const std::byte*>(tensor.data) + (int64_t{row} + r) * tensor.row_stride +
            head * tensor.head_stride);
        for (int c = 0; c < kPanelColumns; ++c) {
          const bool inside = column + c < tensor.columns;
          shared.Write(static_cast<int>(Swizzled(to + r * kPanelRowBytes + c * 2)),
                       inside ? from[column + c] : uint16_t{0});
        }
      }
    });
  }
  void CopyPiece(int to, const void* from, int bytes) {
    EXPECT_EQ(to % 16, 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(from) % 16, 0u);
    shared_.Spoil(to, 16);
    std::array<uint16_t, 8> elements = {};
    std::memcpy(elements.data(), from, bytes);  // The rest stays zero.
    pieces_.push_back([=, &shared = shared_] {
      for (int e = 0; e < 8; ++e) shared.WriteByThread(to + 2 * e, elements[e]);
    });
  }
  void StoreElement(int to, uint16_t value) { shared_.WriteByThread(to, value); }

  void ArriveWithBoxes(int barrier, int bytes) {
    barriers_.Expect(barrier, bytes);
    barriers_.Arrive(barrier, 32);
  }
  void ArriveWithPieces(int barrier) {
    barriers_.AddCopy(barrier, 0, 32, [pieces = std::move(pieces_)] {
      for (const auto& copy : pieces) copy();
    });
    pieces_.clear();
    awaited_ = false;
  }
  void ArriveWithStores(int barrier) { barriers_.Arrive(barrier, 32); }
  void AwaitPieces() { awaited_ = true; }

 private:
  EmulatedShared& shared_;
  EmulatedBarriers& barriers_;
  const CallBoxes& boxes_;
  ThreadOrder order_;
  std::vector<std::function<void()>> pieces_;  // Asked for, and no barrier told yet.
  bool awaited_ = true;
};

class EmulatedGroup {
 public:
  EmulatedGroup(EmulatedShared& shared, EmulatedBarriers& barriers, ThreadOrder order)
      : shared_(shared), barriers_(barriers), order_(order) {}
  ~EmulatedGroup() { EXPECT_TRUE(products_.empty()) << "products that nobody waited for"; }

  template <class T, class F>
  void EachWarp(std::array<WarpLanes<T>, kTileWarps>& lanes, F&& body) {
    fenced_ = false;
    for (int i = 0; i < kTileWarps; ++i) {
      const int index = order_ == ThreadOrder::kRising ? i : kTileWarps - 1 - i;
      EmulatedWarp warp(index, nullptr, nullptr);
      body(warp, lanes[index]);
    }
  }
  void Await(int barrier, uint32_t parity) { barriers_.Await(barrier, parity); }
  void AcquireShared() { shared_.Fence(); }
  void Release(int barrier) {
    for (int i = 0; i < kTileWarps; ++i) barriers_.Arrive(barrier, 1);
  }

  template <class T, class Sum, class Left>
  void BeginProducts(std::array<WarpLanes<T>, kTileWarps>&, Sum&&, Left&&) {
    fenced_ = true;
  }

  template <Element kElement, int kColumns, bool kTransposed, class T, class Sum, class Left>
  void Multiply(std::array<WarpLanes<T>, kTileWarps>& lanes, Sum&& sum, Left&& left, uint64_t right,
                bool add) {
    EXPECT_TRUE(fenced_) << "registers are not fenced";
    Registers registers;
    for (int thread = 0; thread < kTileThreads; ++thread) {
      float(&c)[kColumns / 8][4] = sum(lanes[thread / 32][thread % 32]);
      const uint32_t(&a)[4] = left(lanes[thread / 32][thread % 32]);
      registers[thread] = {&c[0][0], a};
    }
    products_.push_back([=, this] {
      Compute<kElement, kColumns>(registers, ReadRight<kElement, kColumns, kTransposed>(right),
                                  add);
    });
    if (order_ == ThreadOrder::kRising) Finish();
  }
  template <class T, class Sum>
  void EndProducts(std::array<WarpLanes<T>, kTileWarps>&, Sum&&) {
    Finish();
    fenced_ = false;
  }

 private:
  struct ThreadRegisters {
    float* sum;
    const uint32_t* left;
  };
  using Registers = std::array<ThreadRegisters, kTileThreads>;
  template <int kColumns>
  using Right = std::array<std::array<float, kColumns>, 16>;  // [step of the sum][column]

  void Finish() {
    for (const auto& product : products_) product();
    products_.clear();
  }

  // The right operand that a descriptor names, 16 x kColumns.
  template <Element kElement, int kColumns, bool kTransposed>
  Right<kColumns> ReadRight(uint64_t descriptor) const {
    const auto bytes = [descriptor](int bit) {
      return static_cast<int64_t>(descriptor >> bit & 0x3fff) << 4;
    };
    const int64_t begin = bytes(0), leading = bytes(16), stride = bytes(32);
    EXPECT_EQ(descriptor >> 62, 1u) << "not the swizzle of the panels";
    EXPECT_EQ(descriptor >> 49 & 7, 0u) << "panels begin where swizzles do";
    Right<kColumns> right;
    const char* wrong = nullptr;
    for (int k = 0; k < 16; ++k) {
      for (int n = 0; n < kColumns; ++n) {
        // Rows of eight by 128 bytes. Transposed: 64 columns a row, 8 steps of the sum; else 8
        // columns, and the steps along a row.
        const int64_t at = kTransposed
                               ? n % 64 * 2 + n / 64 * leading + k % 8 * 128 + k / 8 * stride
                               : n % 8 * 128 + n / 8 * stride + k * 2;
        right[k][n] = FloatOf16(kElement, shared_.Read(Swizzled(begin + at), wrong));
      }
    }
    EXPECT_EQ(wrong, nullptr) << "a product's right operand is " << wrong;
    return right;
  }

  template <Element kElement, int kColumns>
  static void Compute(const Registers& registers, const Right<kColumns>& right, bool add) {
    std::array<float, kColumns> row;
    for (int r = 0; r < 4 * kWarpRows; ++r) {
      // Row g of a warp is four lanes', as are rows g + 8: columns t, t + 1 of every eight.
      const int first = r / kWarpRows * 32 + r % 8 * 4, pair = r % kWarpRows / 8;
      for (int n = 0; n < kColumns; ++n) {
        const float* sum = registers[first + n % 8 / 2].sum;
        row[n] = add ? sum[n / 8 * 4 + pair * 2 + n % 2] : 0.0f;
      }
      for (int k = 0; k < 16; ++k) {
        const uint32_t bits = registers[first + k % 8 / 2].left[k / 8 * 2 + pair];
        const float left = FloatOf16(kElement, static_cast<uint16_t>(bits >> k % 2 * 16));
        for (int n = 0; n < kColumns; ++n) row[n] += left * right[k][n];
      }
      for (int n = 0; n < kColumns; ++n) {
        registers[first + n % 8 / 2].sum[n / 8 * 4 + pair * 2 + n % 2] = row[n];
      }
    }
  }

  EmulatedShared& shared_;
  EmulatedBarriers& barriers_;
  ThreadOrder order_;
  bool fenced_ = false;
  std::vector<std::function<void()>> products_;  // Handed over and not made.
};

class EmulatedWarpgroup {
 public:
  template <class T>
  using Lanes = std::array<WarpLanes<T>, kTileWarps>;

  // `panel_bytes` of the shared memory are data, the rest barriers.
  EmulatedWarpgroup(int shared_bytes, int panel_bytes, const CallBoxes& boxes, ThreadOrder order)
      : shared_(panel_bytes),
        barriers_((shared_bytes - panel_bytes) / 8, order),
        boxes_(boxes),
        order_(order) {}

  uint32_t Address(int offset) const { return static_cast<uint32_t>(offset); }

  template <class F>
  void InitBarriers(F&& body) {
    body([this](int barrier, int arrivals) { barriers_.Init(barrier, arrivals); });
  }

  template <class Load, class Attend>
  void Split(Load&& load, Attend&& attend) {
    std::thread loading([&] {
      barriers_.Enter(EmulatedBarriers::kLoader);
      EmulatedLoader loader(shared_, barriers_, boxes_, order_);
      load(loader);
      barriers_.Leave();
    });
    barriers_.Enter(EmulatedBarriers::kGroup);
    {
      EmulatedGroup group(shared_, barriers_, order_);
      attend(group);
    }
    barriers_.Leave();
    loading.join();
    barriers_.CheckIdle();
  }

  static float Exp2(float x) { return EmulatedMachine::Exp2(x); }

  template <Element kElement>
  static uint32_t Pack(float low, float high) {
    return EmulatedMachine::Pack<kElement>(low, high);
  }

 private:
  EmulatedShared shared_;
  EmulatedBarriers barriers_;
  const CallBoxes& boxes_;
  ThreadOrder order_;
};

}  // namespace longview::kernels::cuda::testing
