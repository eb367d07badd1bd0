#include "models/dense/linear.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "ATen/core/List.h"
#include "ATen/core/Tensor.h"
#include "ATen/core/dispatch/Dispatcher.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/from_blob.h"
#include "absl/strings/str_cat.h"
#include "c10/core/InferenceMode.h"
#include "c10/util/intrusive_ptr.h"
#include "models/dense/int8_kernels.h"
#include "models/dense/int8_linear.h"
#include "models/parallel.h"
#include "models/status_macros.h"
#include "models/torch_guard.h"

namespace longview::models {
namespace {

using at::Tensor;
using PackSignature = Tensor(const Tensor&, std::optional<int64_t>);
using LinearSignature = Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&,
                               c10::string_view, c10::List<std::optional<at::Scalar>>,
                               std::optional<c10::string_view>);

constexpr int kSmallRows = 16;
constexpr int64_t kWideOutput = 16384;

// Rows of the large and the medium panel, the fastest first.
struct PanelClass {
  int large, medium;
};
constexpr PanelClass kPanelClasses[] = {{kPanelRows, 64}, {192, 48}, {96, 48}, {48, 16}};

at::ScalarType TorchType(Compute compute) {
  return compute == Compute::kFp32 ? at::kFloat : at::kBFloat16;
}

auto FindOperator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

// oneDNN's bf16 kernels for AMX read a row in steps of 32 values. Where it ends within a step they
// read on, into the next row, and multiply that by weights of zero: a NaN there becomes one here.
// Rows and weights of whole steps have no such end.
int64_t WholeSteps(int64_t in, Compute compute) {
  constexpr int64_t kStep = 32;
  return compute == Compute::kFp32 ? in : (in + kStep - 1) / kStep * kStep;
}

// Random rows from a fixed seed: the same ones every time.
std::vector<float> RandomRows(int64_t rows, int64_t width) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> values(static_cast<size_t>(rows * width));
  for (float& value : values) value = uniform(random);
  return values;
}

}  // namespace

struct Linear::Packed {
  Tensor weight;  // Undefined where int8 is all there is.
  std::unique_ptr<const Int8Linear> int8;
  Int8Observer* observer = nullptr;
  std::string name;  // For the observer.
  std::optional<c10::TypedOperatorHandle<LinearSignature>> multiply;
  c10::List<std::optional<at::Scalar>> no_scalars;
  int64_t in = 0, out = 0;
  int64_t steps_in = 0;  // `in` and the zeros behind: columns that the library is given.
  Compute compute = Compute::kFp32;
  PanelSizes sizes;

  Packed(std::span<const float> values, int64_t out, int64_t in, Compute compute)
      : multiply(FindOperator("mkldnn::_linear_pointwise").typed<LinearSignature>()),
        in(in),
        out(out),
        steps_in(WholeSteps(in, compute)),
        compute(compute) {
    const Tensor plain = at::from_blob(const_cast<float*>(values.data()), {out, in}, at::kFloat);
    const Tensor converted = plain.to(TorchType(compute));
    weight = FindOperator("mkldnn::_reorder_linear_weight")
                 .typed<PackSignature>()
                 .call(in == steps_in ? converted : InSteps(converted.const_data_ptr(), out),
                       std::nullopt);
  }

  Packed(std::unique_ptr<const Int8Linear> products, int64_t out, int64_t in, Compute compute)
      : int8(std::move(products)), in(in), out(out), steps_in(in), compute(compute) {
    sizes = {.small = true, .medium = true, .any = true};
  }

  // Rows [rows, in] as [rows, steps_in].
  Tensor InSteps(const void* x, int64_t rows) const {
    Tensor stepped = at::empty({rows, steps_in}, at::TensorOptions().dtype(TorchType(compute)));
    const auto* from = static_cast<const std::byte*>(x);
    auto* to = static_cast<std::byte*>(stepped.mutable_data_ptr());
    const auto bytes = static_cast<size_t>(in * ElementBytes(compute));
    const auto zeros = static_cast<size_t>(steps_in * ElementBytes(compute)) - bytes;
    for (int64_t row = 0; row < rows; ++row, from += bytes, to += bytes + zeros) {
      std::memcpy(to, from, bytes);
      std::memset(to + bytes, 0, zeros);
    }
    return stepped;
  }

  // One block: the result, then scratch.
  Tensor RunInt8(const void* x, int rows) const {
    const c10::InferenceMode inference;
    const auto result = static_cast<int64_t>(kernels::AlignUp(rows * row_bytes()));
    const auto scratch = static_cast<int64_t>(int8->ScratchBytes(rows));
    Tensor block = at::empty({result + scratch}, at::TensorOptions().dtype(at::kByte));
    auto* y = static_cast<std::byte*>(block.mutable_data_ptr());
    int8->Multiply(x, rows, compute, y + result, y, TorchParallelFor());
    return block;
  }

  // Compares the first `rows` rows.
  void Observe(const void* x, int64_t rows, const Tensor& exact) const {
    const Tensor near = RunInt8(x, static_cast<int>(rows));
    double signal = 0, noise = 0;
    const auto add = [&](const auto* want, const auto* got) {
      for (int64_t i = 0; i < rows * out; ++i) {
        const double a = want[i], error = static_cast<double>(got[i]) - a;
        signal += a * a;
        noise += error * error;
      }
    };
    if (compute == Compute::kFp32) {
      add(exact.const_data_ptr<float>(), static_cast<const float*>(near.const_data_ptr()));
    } else {
      add(exact.const_data_ptr<at::BFloat16>(),
          static_cast<const at::BFloat16*>(near.const_data_ptr()));
    }
    observer->Observe(name, signal, noise);
  }

  Tensor Run(const void* x, int rows, int64_t used) const {
    if (int8 != nullptr && observer == nullptr) return RunInt8(x, rows);
    Tensor product = RunFloat(x, rows);
    if (observer != nullptr) Observe(x, used, product);
    return product;
  }

  Tensor RunFloat(const void* x, int rows) const {
    const c10::InferenceMode inference;
    std::optional<TeamScope> team;
    if (sizes.whole_team) team.emplace(WholeTeam());
    const Tensor input = in == steps_in
                             ? at::from_blob(const_cast<void*>(x), {rows, in},
                                             at::TensorOptions().dtype(TorchType(compute)))
                             : InSteps(x, rows);
    return multiply->call(input, weight, std::nullopt, "none", no_scalars, "");
  }

  size_t row_bytes() const { return static_cast<size_t>(out * ElementBytes(compute)); }

  // Whether a panel of `rows` equal rows gives equal rows.
  bool TreatsRowsAlike(int rows) const {
    const Tensor input = at::from_blob(RandomRows(1, in).data(), {1, in}, at::kFloat)
                             .to(TorchType(compute))
                             .repeat({rows, 1});
    const Tensor product = RunFloat(input.const_data_ptr(), rows);
    const auto* bits = static_cast<const char*>(product.const_data_ptr());
    for (int row = 1; row < rows; ++row) {
      if (std::memcmp(bits, bits + row * row_bytes(), row_bytes()) != 0) return false;
    }
    return true;
  }

  // Do rows [0, count) of a panel of `count` rows starting at `first` have the bits they have
  // in `whole`, the result of the largest panel?
  bool Agrees(const Tensor& input, const Tensor& whole, int first, int count) const {
    const int64_t in_bytes = in * ElementBytes(compute);
    const Tensor part =
        RunFloat(static_cast<const char*>(input.const_data_ptr()) + first * in_bytes, count);
    return std::memcmp(part.const_data_ptr(),
                       static_cast<const char*>(whole.const_data_ptr()) + first * row_bytes(),
                       count * row_bytes()) == 0;
  }

  static PanelSizes RowsOf(Compute compute);
  absl::Status ChooseSizes(const std::string& name, const PanelSizes& rows);
};

// By weights of several shapes, narrow, odd and wide, on all threads and on one.
PanelSizes Linear::Packed::RowsOf(Compute compute) {
  constexpr std::pair<int, int> kShapes[] = {{96, 32}, {37, 100}, {768, 768}, {2048, 64}};
  const auto alike = [&](int rows) {
    for (const auto& [out, in] : kShapes) {
      const Packed probe(RandomRows(out, in), out, in, compute);
      if (!probe.TreatsRowsAlike(rows)) return false;
      const TeamScope one(1);
      if (!probe.TreatsRowsAlike(rows)) return false;
    }
    return true;
  };
  PanelSizes sizes;
  for (const PanelClass& panels : kPanelClasses) {
    sizes.large_rows = panels.large;
    sizes.medium_rows = panels.medium;
    if (alike(panels.large)) break;
  }
  return sizes;
}

// Random rows, so that a different order of sums shows; the whole panel is compared at every
// offset of the smaller sizes, which covers first, middle and last place.
absl::Status Linear::Packed::ChooseSizes(const std::string& name, const PanelSizes& rows) {
  sizes = rows;
  const int most = rows.large_rows;
  if (!TreatsRowsAlike(most)) {
    return absl::InternalError(absl::StrCat(
        name, ": equal rows of one ", most,
        "-row product differ in bits on this machine; answers would depend on the batch"));
  }
  const Tensor input = at::from_blob(RandomRows(most, in).data(), {most, in}, at::kFloat)
                           .to(TorchType(compute), false, true);
  const Tensor whole = RunFloat(input.const_data_ptr(), most);
  const auto agrees = [&](int count) {
    for (int first = 0; first < most; first += count) {
      if (!Agrees(input, whole, first, count)) return false;
    }
    return true;
  };
  sizes.small = agrees(kSmallRows);
  sizes.medium = agrees(rows.medium_rows);
  const TeamScope one(1);
  sizes.whole_team = !agrees(most) || (sizes.medium && !agrees(rows.medium_rows)) ||
                     (sizes.small && !agrees(kSmallRows));
  sizes.large = !sizes.medium || out <= kWideOutput;
  return absl::OkStatus();
}

int NextPanel(PanelSizes sizes, int64_t left) {
  const auto padded = [left](int64_t panel) { return (left + panel - 1) / panel * panel; };
  if (sizes.any) return static_cast<int>(std::min<int64_t>(left, sizes.large_rows));
  if (!sizes.large && left >= sizes.medium_rows) return sizes.medium_rows;
  if (left >= sizes.large_rows) return sizes.large_rows;
  // A panel has a fixed price of about 16 rows; small ones run at two thirds of the rate.
  int64_t best = sizes.large_rows, choice = sizes.large_rows;
  if (sizes.medium && padded(sizes.medium_rows) + 16 < best) {
    best = padded(sizes.medium_rows) + 16;
    choice = sizes.medium_rows;
  }
  if (sizes.small && padded(kSmallRows) * 3 / 2 + 16 < best) choice = kSmallRows;
  return static_cast<int>(choice);
}

PanelOutput::~PanelOutput() {
  if (handle_ != nullptr) {
    c10::intrusive_ptr<c10::TensorImpl>::reclaim(static_cast<c10::TensorImpl*>(handle_));
  }
}

absl::StatusOr<Linear> Linear::Pack(const std::string& name, std::span<const float> weight,
                                    int64_t out, int64_t in, Compute compute, PanelRules& rules) {
  if (static_cast<int64_t>(weight.size()) != out * in) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": ", weight.size(), " values, expected ", out, " x ", in));
  }
  std::unique_ptr<Packed> packed;
  absl::Status chosen;
  RETURN_IF_ERROR(GuardTorch(name, [&] {
    const c10::InferenceMode inference;
    packed = std::make_unique<Packed>(weight, out, in, compute);
    const auto known = rules.known.find({out, in, compute});
    if (known != rules.known.end()) {
      packed->sizes = known->second;
    } else {
      auto rows = rules.rows.find(compute);
      if (rows == rules.rows.end())
        rows = rules.rows.emplace(compute, Packed::RowsOf(compute)).first;
      chosen = packed->ChooseSizes(name, rows->second);
    }
  }));
  if (!chosen.ok()) return chosen;
  rules.known[{out, in, compute}] = packed->sizes;
  return Linear(std::move(packed));
}

absl::StatusOr<Linear> Linear::PackInt8(const std::string& name, std::span<const float> weight,
                                        int64_t out, int64_t in, Compute compute) {
  if (static_cast<int64_t>(weight.size()) != out * in || in > kernels::kInt8MaxInputs) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", weight.size(), " values, expected ",
                                                   out, " x ", in, ", with at most ",
                                                   kernels::kInt8MaxInputs, " inputs for int8"));
  }
  return Linear(std::make_unique<Packed>(
      std::make_unique<Int8Linear>(weight, out, in, *ChooseInt8().kernels), out, in, compute));
}

absl::StatusOr<Linear> Linear::PackObserved(const std::string& name, std::span<const float> weight,
                                            int64_t out, int64_t in, Compute compute,
                                            PanelRules& rules, Int8Observer& observer) {
  ASSIGN_OR_RETURN(Linear exact, Pack(name, weight, out, in, compute, rules));
  ASSIGN_OR_RETURN(Linear near, PackInt8(name, weight, out, in, compute));
  exact.packed_->int8 = std::move(near.packed_->int8);
  exact.packed_->observer = &observer;
  exact.packed_->name = name;
  return exact;
}

Linear::Linear(std::unique_ptr<Packed> packed) : packed_(std::move(packed)) {}
Linear::Linear(Linear&&) noexcept = default;
Linear& Linear::operator=(Linear&&) noexcept = default;
Linear::~Linear() = default;

int64_t Linear::in() const { return packed_->in; }
int64_t Linear::out() const { return packed_->out; }
Compute Linear::compute() const { return packed_->compute; }
PanelSizes Linear::sizes() const { return packed_->sizes; }
int64_t Linear::RowScratchBytes() const {
  const int64_t stepped =
      packed_->steps_in == packed_->in ? 0 : packed_->steps_in * ElementBytes(packed_->compute);
  return packed_->int8 != nullptr ? packed_->int8->QuantizedRowBytes() : stepped;
}
int64_t Linear::bytes() const {
  const int64_t int8 = packed_->int8 != nullptr ? packed_->int8->bytes() : 0;
  if (!packed_->weight.defined()) return int8;
  return int8 + packed_->steps_in * packed_->out * ElementBytes(packed_->compute);
}

PanelOutput Linear::Panel(const void* x, int panel_rows, int64_t used) const {
  Tensor y = packed_->Run(x, panel_rows, used);
  void* data = y.mutable_data_ptr();
  return PanelOutput(y.unsafeReleaseTensorImpl(), data);
}

}  // namespace longview::models
