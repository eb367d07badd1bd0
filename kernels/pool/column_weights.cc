#include "kernels/pool/column_weights.h"

#include <cstring>
#include <limits>

namespace longview::kernels {
namespace {

constexpr int kLanes = 16;
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
using Ints = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));

// A finite one: differences from it are numbers, or -inf for scores of -inf.
constexpr float kLowest = std::numeric_limits<float>::lowest();
// Below it exp has no normal result; weights that small are nothing.
constexpr float kLeastExponent = -87.0f;

// a = mask ? a : b, lane by lane; a lane's mask has all bits or none.
[[gnu::always_inline]] inline void Choose(const Ints& mask, Floats& a, const Floats& b) {
  a = reinterpret_cast<Floats>((reinterpret_cast<Ints>(a) & mask) |
                               (reinterpret_cast<Ints>(b) & ~mask));
}

// exp of x <= 0, in place: 2^n times a polynomial of the rest, |rest| <= ln 2 / 2 (Cephes' expf).
[[gnu::always_inline]] inline void ExpInPlace(Floats& x) {
  constexpr float kRound = 12582912.0f;       // 1.5 * 2^23: adding it leaves no fraction.
  const Ints normal = ~(x < kLeastExponent);  // NaN stays NaN.
  const Floats zero = {};
  Choose(normal, x, zero);
  Floats n = x * 1.44269504f + kRound;
  n = n - kRound;
  // ln 2 in two parts: n times the first, which has few bits, is exact.
  const Floats r = x - n * 0.693359375f + n * 2.12194440e-4f;
  Floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const Ints power = (__builtin_convertvector(n, Ints) + 127) << 23;
  x = p * reinterpret_cast<Floats>(power);
  Choose(normal, x, zero);
}

// The columns of a call, a vector at a time; the last one may be a part of one. Whole vectors copy
// without a length.
struct Vectors {
  explicit Vectors(int columns) : whole(columns / kLanes), rest(columns % kLanes) {}

  template <typename Body>
  [[gnu::always_inline]] void Each(Body&& body) const {
    for (int i = 0; i < whole; ++i) body(i, kLanes * sizeof(float));
    if (rest > 0) body(whole, static_cast<size_t>(rest) * sizeof(float));
  }

  const int whole, rest;
};

// Rows are read and written whole, in order: the memory of a long document is walked three times,
// and not once per vector of columns.
[[gnu::always_inline]] inline void Weigh(const ColumnWeights& request) {
  const Vectors vectors(request.columns);
  const auto visible = [&](int64_t t) {
    return request.visible == nullptr || request.visible[t] != 0;
  };
  const Floats zero = {};
  Floats top[kWeightColumns / kLanes], total[kWeightColumns / kLanes];
  vectors.Each([&](int i, size_t) {
    top[i] = zero + kLowest;
    total[i] = zero;
  });
  for (int64_t t = 0; t < request.tokens; ++t) {
    if (!visible(t)) continue;
    const float* row = request.scores + t * request.score_stride;
    vectors.Each([&](int i, size_t bytes) {
      Floats scores = {};
      std::memcpy(&scores, row + i * kLanes, bytes);
      const Ints below = scores <= top[i];
      Choose(below, top[i], scores);
    });
  }
  for (int64_t t = 0; t < request.tokens; ++t) {
    float* out = request.weights + t * request.weight_stride;
    if (!visible(t)) {
      std::memset(out, 0, static_cast<size_t>(request.columns) * sizeof(float));
      continue;
    }
    const float* row = request.scores + t * request.score_stride;
    vectors.Each([&](int i, size_t bytes) {
      Floats weight = {};
      std::memcpy(&weight, row + i * kLanes, bytes);
      weight -= top[i];
      ExpInPlace(weight);
      // Tokens in order, one chain per column: the sum's bits depend on the segment alone.
      total[i] += weight;
      std::memcpy(out + i * kLanes, &weight, bytes);
    });
  }
  // A column without visible tokens weighs nothing: zeros instead of 0 / 0.
  Floats scale[kWeightColumns / kLanes];
  vectors.Each([&](int i, size_t) {
    const Ints some = ~(total[i] == 0.0f);
    scale[i] = 1.0f / total[i];
    Choose(some, scale[i], zero);
  });
  for (int64_t t = 0; t < request.tokens; ++t) {
    float* out = request.weights + t * request.weight_stride;
    vectors.Each([&](int i, size_t bytes) {
      Floats weight = {};
      std::memcpy(&weight, out + i * kLanes, bytes);
      weight *= scale[i];
      std::memcpy(out + i * kLanes, &weight, bytes);
    });
  }
}

}  // namespace

// One body, compiled for the widths a server meets, as SumWeighted.
[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void WeighColumns(
    const ColumnWeights& request) {
  Weigh(request);
}

}  // namespace longview::kernels
