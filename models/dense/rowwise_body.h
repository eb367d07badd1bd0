// The one source of the row kernels, compiled once per instruction set by rowwise_*.cc, each in
// its own namespace. GCC's vector extensions: 16 lanes, lowered to whatever registers there are.
//
// Includes plain-data headers only: an inline function of a library compiled with AVX-512
// could be the copy the linker keeps for everybody.
#include <cstdint>

#include "models/dense/rowwise.h"

namespace longview::models::LONGVIEW_ROWWISE_NAMESPACE {
namespace {

constexpr int kLanes = 16;
using F = float __attribute__((vector_size(64)));
using I = int32_t __attribute__((vector_size(64)));
using U = uint32_t __attribute__((vector_size(64)));
using H = uint16_t __attribute__((vector_size(32)));
using FloatsAnywhere = float __attribute__((vector_size(64), aligned(4), may_alias));
using HalvesAnywhere = uint16_t __attribute__((vector_size(32), aligned(2), may_alias));

struct Bf16 {
  uint16_t bits;
};

inline F Splat(float value) { return value - F{}; }
inline F Load(const float* p) { return *reinterpret_cast<const FloatsAnywhere*>(p); }
inline F Load(const Bf16* p) {
  const U wide = __builtin_convertvector(*reinterpret_cast<const HalvesAnywhere*>(p), U);
  return reinterpret_cast<F>(wide << 16);
}
inline void Store(float* p, F v) { *reinterpret_cast<FloatsAnywhere*>(p) = v; }
// Rounds to nearest even; a NaN keeps its upper half and gets a quiet bit.
inline void Store(Bf16* p, F v) {
  const U bits = reinterpret_cast<U>(v);
  const U rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const U quiet = (bits >> 16) | 0x40u;
  const U result = (v == v) ? rounded : quiet;
  *reinterpret_cast<HalvesAnywhere*>(p) = __builtin_convertvector(result, H);
}

// The last n % 16 columns, through a full vector, so that every column has the same arithmetic.
template <typename T>
inline F LoadTail(const T* p, int64_t count) {
  T buffer[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) buffer[i] = p[i];
  return Load(buffer);
}
template <typename T>
inline void StoreTail(T* p, F v, int64_t count) {
  T buffer[kLanes];
  Store(buffer, v);
  for (int64_t i = 0; i < count; ++i) p[i] = buffer[i];
}
template <typename T>
inline F LoadAt(const T* p, int64_t i, int64_t n) {
  return i + kLanes <= n ? Load(p + i) : LoadTail(p + i, n - i);
}
template <typename T>
inline void StoreAt(T* p, int64_t i, int64_t n, F v) {
  i + kLanes <= n ? Store(p + i, v) : StoreTail(p + i, v, n - i);
}

// Each gives b where one of them is NaN, so a bound comes first.
inline F Min(F a, F b) { return a < b ? a : b; }
inline F Max(F a, F b) { return a > b ? a : b; }

inline float Sum(F v) {
  float lanes[kLanes];
  Store(lanes, v);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

// exp(x) = 2^k e^r, |r| <= ln 2 / 2, e^r by its Taylor series to the 7th power: below 2 ulp.
// Flushes to zero below -87.3; NaN stays NaN.
inline F Exp(F x) {
  const F clamped = Max(Splat(-87.3f), Min(Splat(88.0f), x));
  const F shifter = Splat(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer.
  const F shifted = clamped * 1.44269504f + shifter;
  const F k = shifted - shifter;
  const F r = (clamped - k * 0.693359375f) + k * 2.12194440e-4f;
  F p = Splat(1.0f / 5040);
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const I exponent = (reinterpret_cast<I>(shifted) - reinterpret_cast<I>(shifter)) << 23;
  const F scaled = reinterpret_cast<F>(reinterpret_cast<I>(p) + exponent);
  const F bounded = x < Splat(-87.3f) ? F{} : scaled;
  return x == x ? bounded : x;
}

// tanh through exp(-2|x|): absolute error below 2e-7.
inline F Tanh(F x) {
  const F magnitude = Max(x, -x);
  const F e = Exp(-2.0f * magnitude);
  const F t = (1.0f - e) / (1.0f + e);
  return x < F{} ? -t : t;
}

// erf(x) = x P(x^2) / Q(x^2) on |x| <= 3.92, where it reaches 1 - 3e-8; coefficients from our own
// weighted least-squares fit, absolute error 1.6e-8 before rounding.
inline F Erf(F x) {
  const F c = Max(Splat(-3.9192059f), Min(Splat(3.9192059f), x));
  const F s = c * c;
  F p = Splat(2.035287291e-06f);
  p = p * s + 2.874587775e-04f;
  p = p * s + 3.866667395e-03f;
  p = p * s + 5.305549427e-02f;
  p = p * s + 1.927232454e-01f;
  p = p * s + 1.128379023e+00f;
  F q = Splat(3.807523678e-05f);
  q = q * s + 1.187741787e-03f;
  q = q * s + 1.516898778e-02f;
  q = q * s + 1.150681145e-01f;
  q = q * s + 5.041282053e-01f;
  q = q * s + 1.0f;
  return c * p / q;
}

template <Activation kAct>
inline F Apply(F x) {
  if constexpr (kAct == Activation::kGelu) return 0.5f * x * (1.0f + Erf(x * 0.70710678f));
  if constexpr (kAct == Activation::kGeluTanh) {
    return 0.5f * x * (1.0f + Tanh(0.79788456f * (x + 0.044715f * x * x * x)));
  }
  if constexpr (kAct == Activation::kRelu) return Max(F{}, x);
  if constexpr (kAct == Activation::kSilu) return x / (1.0f + Exp(-x));
  if constexpr (kAct == Activation::kTanh) return Tanh(x);
  if constexpr (kAct == Activation::kQuickGelu) return x / (1.0f + Exp(-1.702f * x));
  return x;
}

// Calls body.operator()<act>().
template <typename Body>
inline void WithActivation(Activation act, const Body& body) {
  switch (act) {
    case Activation::kNone:
      return body.template operator()<Activation::kNone>();
    case Activation::kGelu:
      return body.template operator()<Activation::kGelu>();
    case Activation::kGeluTanh:
      return body.template operator()<Activation::kGeluTanh>();
    case Activation::kRelu:
      return body.template operator()<Activation::kRelu>();
    case Activation::kSilu:
      return body.template operator()<Activation::kSilu>();
    case Activation::kTanh:
      return body.template operator()<Activation::kTanh>();
    case Activation::kQuickGelu:
      return body.template operator()<Activation::kQuickGelu>();
  }
}

template <typename T>
void BiasAct(void* y, const float* bias, int64_t n, Activation act) {
  T* row = static_cast<T*>(y);
  WithActivation(act, [&]<Activation kAct>() {
    for (int64_t i = 0; i < n; i += kLanes) {
      StoreAt(row, i, n, Apply<kAct>(LoadAt(row, i, n) + LoadAt(bias, i, n)));
    }
  });
}

template <typename T>
void BiasGate(void* y, const float* bias, const void* gate, const float* gate_bias, int64_t n,
              Activation act) {
  T* row = static_cast<T*>(y);
  const T* gates = static_cast<const T*>(gate);
  WithActivation(act, [&]<Activation kAct>() {
    for (int64_t i = 0; i < n; i += kLanes) {
      const F value = Apply<kAct>(LoadAt(row, i, n) + LoadAt(bias, i, n));
      StoreAt(row, i, n, value * (LoadAt(gates, i, n) + LoadAt(gate_bias, i, n)));
    }
  });
}

template <typename T>
void BiasRotate(const void* y, const float* bias, const float* cosines, const float* sines,
                int64_t heads, int64_t half, void* out) {
  for (int64_t head = 0; head < heads; ++head) {
    const T* from = static_cast<const T*>(y) + 2 * half * head;
    const float* added = bias + 2 * half * head;
    T* to = static_cast<T*>(out) + 2 * half * head;
    for (int64_t i = 0; i < half; i += kLanes) {
      const F a = LoadAt(from, i, half) + LoadAt(added, i, half);
      const F b = LoadAt(from + half, i, half) + LoadAt(added + half, i, half);
      const F cosine = LoadAt(cosines, i, half), sine = LoadAt(sines, i, half);
      StoreAt(to, i, half, a * cosine - b * sine);
      StoreAt(to + half, i, half, b * cosine + a * sine);
    }
  }
}

template <typename T, typename Out>
void BiasTo(const void* y, const float* bias, int64_t n, Out* out) {
  const T* row = static_cast<const T*>(y);
  for (int64_t i = 0; i < n; i += kLanes) {
    StoreAt(out, i, n, LoadAt(row, i, n) + LoadAt(bias, i, n));
  }
}

template <typename T>
void BiasCopy(const void* y, const float* bias, int64_t n, void* out) {
  BiasTo<T>(y, bias, n, static_cast<T*>(out));
}

template <typename T>
void BiasWiden(const void* y, const float* bias, int64_t n, float* out) {
  BiasTo<T>(y, bias, n, out);
}

template <typename T>
void Narrow(const float* x, int64_t n, void* out) {
  T* row = static_cast<T*>(out);
  for (int64_t i = 0; i < n; i += kLanes) StoreAt(row, i, n, LoadAt(x, i, n));
}

template <typename T>
inline constexpr bool kIsFloat = false;
template <>
inline constexpr bool kIsFloat<float> = true;

struct Moments {
  float mean, factor;  // factor = 1 / sqrt(variance + eps)
};

// Normalises a row whose columns i .. are value(i) and whose sum is `total`.
template <typename Value>
inline Moments MomentsOf(const Value& value, float total, float eps, int64_t n) {
  const float mean = total / static_cast<float>(n);
  F squares = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    F d = value(i) - mean;
    // Absent columns must not count as (0 - mean)^2.
    for (int64_t lane = n - i; lane < kLanes; ++lane) d[lane] = 0;
    squares += d * d;
  }
  const float variance = Sum(squares) / static_cast<float>(n);
  return {mean, 1.0f / __builtin_sqrtf(variance + eps)};
}

inline F Normed(F value, Moments m, const NormWeights& norm, int64_t i, int64_t n) {
  return (value - m.mean) * m.factor * LoadAt(norm.gamma, i, n) + LoadAt(norm.beta, i, n);
}

// x holds the sum already, `total` its sum over the columns.
template <typename T>
void NormInPlace(float* x, float total, const NormWeights& norm, int64_t n, T* copy) {
  const Moments m = MomentsOf([&](int64_t i) { return LoadAt(x, i, n); }, total, norm.eps, n);
  for (int64_t i = 0; i < n; i += kLanes) {
    const F v = Normed(LoadAt(x, i, n), m, norm, i, n);
    StoreAt(x, i, n, v);
    if constexpr (!kIsFloat<T>) {
      if (copy != nullptr) StoreAt(copy, i, n, v);
    }
  }
}

template <typename T>
void ResidualNorm(float* x, const void* y, const float* bias, const NormWeights& norm, int64_t n,
                  void* copy) {
  const T* row = static_cast<const T*>(y);
  F total = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    F v = LoadAt(x, i, n) + LoadAt(bias, i, n);
    if (row != nullptr) v += LoadAt(row, i, n);
    StoreAt(x, i, n, v);
    total += v;
  }
  NormInPlace(x, Sum(total), norm, n, static_cast<T*>(copy));
}

// out = LayerNorm of value(i), which gives 16 columns from i on. Three passes over the row instead
// of scratch for it.
template <typename T, typename Value>
void NormTo(const Value& value, const NormWeights& norm, int64_t n, T* out) {
  F total = {};
  for (int64_t i = 0; i < n; i += kLanes) total += value(i);
  const Moments m = MomentsOf(value, Sum(total), norm.eps, n);
  for (int64_t i = 0; i < n; i += kLanes) {
    StoreAt(out, i, n, Normed(value(i), m, norm, i, n));
  }
}

template <typename T>
void BiasNorm(const void* y, const float* bias, const NormWeights& norm, int64_t n, void* out) {
  const T* row = static_cast<const T*>(y);
  NormTo([&](int64_t i) { return LoadAt(row, i, n) + LoadAt(bias, i, n); }, norm, n,
         static_cast<T*>(out));
}

template <typename T>
void PlainNorm(const float* x, const NormWeights& norm, int64_t n, void* out) {
  NormTo([&](int64_t i) { return LoadAt(x, i, n); }, norm, n, static_cast<T*>(out));
}

template <typename T>
void ResidualAdd(float* x, const void* y, const float* bias, int64_t n, void* copy) {
  const T* row = static_cast<const T*>(y);
  for (int64_t i = 0; i < n; i += kLanes) {
    const F v = LoadAt(x, i, n) + LoadAt(bias, i, n) + LoadAt(row, i, n);
    StoreAt(x, i, n, v);
    if constexpr (!kIsFloat<T>) {
      if (copy != nullptr) StoreAt(static_cast<T*>(copy), i, n, v);
    }
  }
}

template <typename T>
void ResidualPrenorm(float* x, const void* y, const float* bias, const NormWeights& norm, int64_t n,
                     void* out) {
  const T* row = static_cast<const T*>(y);
  F total = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    F v = LoadAt(x, i, n) + LoadAt(bias, i, n);
    if (row != nullptr) v += LoadAt(row, i, n);
    StoreAt(x, i, n, v);
    total += v;
  }
  const Moments m = MomentsOf([&](int64_t i) { return LoadAt(x, i, n); }, Sum(total), norm.eps, n);
  for (int64_t i = 0; i < n; i += kLanes) {
    StoreAt(static_cast<T*>(out), i, n, Normed(LoadAt(x, i, n), m, norm, i, n));
  }
}

template <typename T>
void SumNorm(float* x, const float* a, const float* b, const float* c, const NormWeights& norm,
             int64_t n, void* copy) {
  F total = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    const F v = (LoadAt(a, i, n) + LoadAt(b, i, n)) + LoadAt(c, i, n);
    StoreAt(x, i, n, v);
    total += v;
  }
  NormInPlace(x, Sum(total), norm, n, static_cast<T*>(copy));
}

float Dot(const float* a, const float* b, int64_t n) {
  F sum = {};
  for (int64_t i = 0; i < n; i += kLanes) sum += LoadAt(a, i, n) * LoadAt(b, i, n);
  return Sum(sum);
}

void AddScaled(float* y, const float* x, float factor, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    StoreAt(y, i, n, LoadAt(y, i, n) + factor * LoadAt(x, i, n));
  }
}

// Four columns at a time share the loads of x; each keeps Dot's order of sums.
void Dots(const float* x, const float* u, int64_t columns, int64_t n, float* scores) {
  int64_t c = 0;
  for (; c + 4 <= columns; c += 4) {
    const float* u0 = u + c * n;
    F sums[4] = {};
    for (int64_t i = 0; i < n; i += kLanes) {
      const F v = LoadAt(x, i, n);
      for (int k = 0; k < 4; ++k) sums[k] += v * LoadAt(u0 + k * n, i, n);
    }
    for (int k = 0; k < 4; ++k) scores[c + k] = Sum(sums[k]);
  }
  for (; c < columns; ++c) scores[c] = Dot(x, u + c * n, n);
}

float ExpSum(float* x, float shift, int64_t n) {
  F sum = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const F e = Exp(Load(x + i) - shift);
    Store(x + i, e);
    sum += e;
  }
  if (i < n) {
    F e = Exp(LoadTail(x + i, n - i) - shift);
    StoreTail(x + i, e, n - i);
    for (int64_t j = n - i; j < kLanes; ++j) e[j] = 0;
    sum += e;
  }
  return Sum(sum);
}

template <typename T>
void WeightedRows(const void* const* rows, const float* weights, int64_t count, const float* bias,
                  int64_t n, void* out) {
  for (int64_t c = 0; c < n; c += kLanes) {
    F sum = LoadAt(bias, c, n);
    for (int64_t i = 0; i < count; ++i) {
      if (rows[i] == nullptr) continue;
      sum += LoadAt(weights + i * n, c, n) * LoadAt(static_cast<const T*>(rows[i]), c, n);
    }
    StoreAt(static_cast<T*>(out), c, n, sum);
  }
}

template <typename T>
constexpr RowKernels kRows = {BiasAct<T>,     BiasGate<T>,        BiasRotate<T>, BiasCopy<T>,
                              BiasWiden<T>,   ResidualNorm<T>,    SumNorm<T>,    Narrow<T>,
                              ResidualAdd<T>, ResidualPrenorm<T>, BiasNorm<T>,   PlainNorm<T>,
                              WeightedRows<T>};

}  // namespace

extern const RowKernels kFloatRows;
extern const RowKernels kBf16Rows;
extern const VectorKernels kVectors;
const RowKernels kFloatRows = kRows<float>;
const RowKernels kBf16Rows = kRows<Bf16>;
const VectorKernels kVectors = {Dot, AddScaled, Dots, ExpSum};

}  // namespace longview::models::LONGVIEW_ROWWISE_NAMESPACE
