// span_tile.h's machine on a CPU: a thread block's threads in lockstep, with the fragment layouts
// that the PTX manual gives for ldmatrix and mma.m16n8k16.
//
// Stricter than a GPU: shared memory is exactly as large as asked for and starts as NaNs, a copy
// arrives as late as the program allows, and touching a warp's fragments outside its turn is
// impossible by construction.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "kernels/cuda/base/element.h"
#include "kernels/cuda/base/program.h"
#include "kernels/cuda/span/span_tile.h"

namespace longview::kernels::cuda::testing {

template <class T>
using WarpLanes = std::array<T, 32>;

// One matrix of 16 x 16 or 8 x 16 elements as floats.
template <int kRows, int kColumns>
using Matrix = std::array<std::array<float, kColumns>, kRows>;

class EmulatedWarp {
 public:
  EmulatedWarp(int index, const uint16_t* shared_begin, const uint16_t* shared_end)
      : index_(index), shared_begin_(shared_begin), shared_end_(shared_end) {}

  int index() const { return index_; }

  template <class F>
  void Each(F&& body) {
    for (int lane = 0; lane < 32; ++lane) body(lane);
  }

  void Sync() {}

  template <bool kTransposed, class T, class Address>
  void LoadMatrices(WarpLanes<T>& lanes, Address&& address) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      std::array<const uint16_t*, 8> rows;
      for (int r = 0; r < 8; ++r) {
        rows[r] = address(matrix * 8 + r);
        EXPECT_EQ((rows[r] - shared_begin_) % 8, 0) << "rows start at 16 bytes";
        EXPECT_TRUE(rows[r] >= shared_begin_ && rows[r] + 8 <= shared_end_) << "outside";
      }
      for (int lane = 0; lane < 32; ++lane) {
        const int i = lane / 4, j = lane % 4 * 2;
        const uint32_t low = kTransposed ? rows[j][i] : rows[i][j];
        const uint32_t high = kTransposed ? rows[j + 1][i] : rows[i][j + 1];
        lanes[lane].b[matrix] = low | high << 16;
      }
    }
  }

  template <Element kElement, class T, class Sum, class Left>
  void Multiply(WarpLanes<T>& lanes, Sum&& sum, Left&& left, int first) {
    Matrix<16, 16> a;
    Matrix<8, 16> b;  // [column][row]
    for (int lane = 0; lane < 32; ++lane) {
      const int g = lane / 4, t = lane % 4 * 2;
      const uint32_t(&from)[4] = left(lanes[lane]);
      for (int i = 0; i < 4; ++i) {
        Unpack<kElement>(from[i], &a[g + i % 2 * 8][t + i / 2 * 8]);
      }
      for (int i = 0; i < 2; ++i) Unpack<kElement>(lanes[lane].b[first + i], &b[g][t + i * 8]);
    }
    for (int lane = 0; lane < 32; ++lane) {
      float(&c)[4] = sum(lanes[lane]);
      for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 16; ++k) c[i] += a[row][k] * b[column][k];
      }
    }
  }

  template <class T, class Pair>
  void QuadMax(WarpLanes<T>& lanes, Pair&& pair) {
    Reduce(lanes, pair, [](float x, float y) { return std::fmax(x, y); });
  }
  template <class T, class Pair>
  void QuadSum(WarpLanes<T>& lanes, Pair&& pair) {
    Reduce(lanes, pair, [](float x, float y) { return x + y; });
  }

  template <int kGroup, class T, class Value>
  void SumGroups(WarpLanes<T>& lanes, Value&& value) {
    ReduceGroups<kGroup>(lanes, value, [](float x, float y) { return x + y; });
  }
  template <int kGroup, class T, class Value>
  void MaxGroups(WarpLanes<T>& lanes, Value&& value) {
    ReduceGroups<kGroup>(lanes, value, [](float x, float y) { return std::fmax(x, y); });
  }

  template <class T, class Test>
  bool Any(WarpLanes<T>& lanes, Test&& test) {
    bool any = false;
    for (const T& lane : lanes) any |= test(lane);
    return any;
  }
  template <class T, class Test>
  bool All(WarpLanes<T>& lanes, Test&& test) {
    bool all = true;
    for (const T& lane : lanes) all &= test(lane);
    return all;
  }

 private:
  template <Element kElement>
  static void Unpack(uint32_t bits, float* to) {
    to[0] = FloatOf16(kElement, static_cast<uint16_t>(bits));
    to[1] = FloatOf16(kElement, static_cast<uint16_t>(bits >> 16));
  }

  template <int kGroup, class T, class Value, class Op>
  static void ReduceGroups(WarpLanes<T>& lanes, Value& value, Op op) {
    for (int distance = kGroup / 2; distance > 0; distance /= 2) {
      std::array<float, 32> before;
      for (int lane = 0; lane < 32; ++lane) before[lane] = value(lanes[lane]);
      for (int lane = 0; lane < 32; ++lane) {
        value(lanes[lane]) = op(before[lane], before[lane ^ distance]);
      }
    }
  }

  // Butterflies over distances 1 and 2, as shuffles do them: all lanes read before any writes.
  template <class T, class Pair, class Op>
  static void Reduce(WarpLanes<T>& lanes, Pair& pair, Op op) {
    for (const int distance : {1, 2}) {
      std::array<std::array<float, 2>, 32> before;
      for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < 2; ++i) before[lane][i] = pair(lanes[lane])[i];
      }
      for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < 2; ++i) {
          pair(lanes[lane])[i] = op(before[lane][i], before[lane ^ distance][i]);
        }
      }
    }
  }

  int index_;
  const uint16_t* shared_begin_;
  const uint16_t* shared_end_;
};

// Rising: warps run first to last and copies arrive at once, so a program that overwrites what is
// still read fails. Falling: last to first, and copies arrive as late as the program allows, so one
// that waits too little fails.
class EmulatedMachine {
 public:
  template <class T>
  using Lanes = std::array<WarpLanes<T>, kTileWarps>;

  EmulatedMachine(int shared_bytes, ThreadOrder order)
      : shared_(shared_bytes / 2, uint16_t{0x7fff}), order_(order) {}

  uint16_t* shared() { return shared_.data(); }

  template <class F>
  void EachThread(F&& body) {
    for (int i = 0; i < kTileThreads; ++i) body(Turn(i, kTileThreads));
  }
  template <class T, class F>
  void EachWarp(std::array<WarpLanes<T>, kTileWarps>& lanes, F&& body) {
    for (int i = 0; i < kTileWarps; ++i) {
      const int index = Turn(i, kTileWarps);
      EmulatedWarp warp(index, shared_.data(), shared_.data() + shared_.size());
      body(warp, lanes[index]);
    }
  }

  void CopyPiece(void* to_piece, const void* from, int bytes) {
    auto* to = static_cast<uint16_t*>(to_piece);
    EXPECT_TRUE(to >= shared_.data() && to + 8 <= shared_.data() + shared_.size()) << "outside";
    EXPECT_EQ((to - shared_.data()) % 8, 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(from) % 16, 0u);
    Copy copy{to, {}};
    std::memcpy(copy.elements.data(), from, bytes);  // The rest stays zero.
    group_.push_back(copy);
    if (order_ == ThreadOrder::kRising) {
      Arrive(group_);
    } else {
      std::fill_n(to, 8, uint16_t{0x7fff});  // Until it arrives, nothing there is of use.
    }
  }
  void EndCopies() {
    under_way_.push_back(std::move(group_));
    group_.clear();
  }
  template <int kLeft>
  void AwaitCopies() {
    for (; under_way_.size() > kLeft; under_way_.pop_front()) Arrive(under_way_.front());
  }
  void Sync() {}

  static void Read16(const void* from, uint32_t* to) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(from) % 16, 0u);
    std::memcpy(to, from, 16);
  }

  static void ReadShared(const float* from, float* to) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(from) % 16, 0u);
    std::memcpy(to, from, 16);
  }

  static float Exp2(float x) { return std::exp2(x); }

  template <Element kElement>
  static uint32_t Pack(float low, float high) {
    return Of16(kElement, low) | static_cast<uint32_t>(Of16(kElement, high)) << 16;
  }

  template <Element kElement>
  static void Unpack(uint32_t bits, float* to) {
    to[0] = FloatOf16(kElement, static_cast<uint16_t>(bits));
    to[1] = FloatOf16(kElement, static_cast<uint16_t>(bits >> 16));
  }

 private:
  struct Copy {
    uint16_t* to;
    std::array<uint16_t, 8> elements;
  };

  int Turn(int i, int count) const { return order_ == ThreadOrder::kRising ? i : count - 1 - i; }

  static void Arrive(std::vector<Copy>& copies) {
    for (const Copy& copy : copies) std::memcpy(copy.to, copy.elements.data(), 16);
    copies.clear();
  }

  std::vector<uint16_t> shared_;
  ThreadOrder order_;
  std::vector<Copy> group_;
  std::deque<std::vector<Copy>> under_way_;
};

}  // namespace longview::kernels::cuda::testing
