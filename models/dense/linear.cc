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
#include "ATen/ops/from_blob.h"
#include "absl/strings/str_cat.h"
#include "c10/core/InferenceMode.h"
#include "c10/util/intrusive_ptr.h"
#include "models/parallel.h"
#include "models/torch_guard.h"

namespace longview::models {
namespace {

using at::Tensor;
using PackSignature = Tensor(const Tensor&, std::optional<int64_t>);
using LinearSignature = Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&,
                               c10::string_view, c10::List<std::optional<at::Scalar>>,
                               std::optional<c10::string_view>);

constexpr int kSmallRows = 16;
constexpr int kMediumRows = 64;
constexpr int64_t kWideOutput = 16384;

at::ScalarType TorchType(Compute compute) {
  return compute == Compute::kFp32 ? at::kFloat : at::kBFloat16;
}

auto FindOperator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

}  // namespace

struct Linear::Packed {
  Tensor weight;
  c10::TypedOperatorHandle<LinearSignature> multiply;
  c10::List<std::optional<at::Scalar>> no_scalars;
  int64_t in = 0, out = 0;
  Compute compute = Compute::kFp32;
  PanelSizes sizes;

  Packed(c10::TypedOperatorHandle<LinearSignature> op) : multiply(op) {}

  Tensor Run(const void* x, int rows) const {
    const c10::InferenceMode inference;
    std::optional<TeamScope> team;
    if (sizes.whole_team) team.emplace(WholeTeam());
    const Tensor input = at::from_blob(const_cast<void*>(x), {rows, in},
                                       at::TensorOptions().dtype(TorchType(compute)));
    return multiply.call(input, weight, std::nullopt, "none", no_scalars, "");
  }

  // Do rows [0, count) of a panel of `count` rows starting at `first` have the bits they have
  // in `whole`, the result of the kPanelRows panel?
  bool Agrees(const Tensor& input, const Tensor& whole, int first, int count) const {
    const int64_t in_bytes = in * ElementBytes(compute), out_bytes = out * ElementBytes(compute);
    const Tensor part =
        Run(static_cast<const char*>(input.const_data_ptr()) + first * in_bytes, count);
    return std::memcmp(part.const_data_ptr(),
                       static_cast<const char*>(whole.const_data_ptr()) + first * out_bytes,
                       static_cast<size_t>(count * out_bytes)) == 0;
  }

  absl::Status ChooseSizes(const std::string& name);
};

// Random rows, so that a different order of sums shows; the whole panel is compared at every
// offset of the smaller sizes, which covers first, middle and last place.
absl::Status Linear::Packed::ChooseSizes(const std::string& name) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> values(static_cast<size_t>(kPanelRows * in));
  for (float& value : values) value = uniform(random);
  const auto row = [&](int i) { return values.begin() + i * in; };
  for (const int place : {kPanelRows / 2 + 1, kPanelRows - 1}) {
    std::copy(row(0), row(0) + in, row(place));
  }
  const Tensor input =
      at::from_blob(values.data(), {kPanelRows, in}, at::kFloat).to(TorchType(compute));
  const Tensor whole = Run(input.const_data_ptr(), kPanelRows);
  const auto* bits = static_cast<const char*>(whole.const_data_ptr());
  const size_t out_bytes = static_cast<size_t>(out * ElementBytes(compute));
  for (const int place : {kPanelRows / 2 + 1, kPanelRows - 1}) {
    if (std::memcmp(bits, bits + static_cast<size_t>(place) * out_bytes, out_bytes) != 0) {
      return absl::InternalError(absl::StrCat(
          name, ": equal rows of one ", kPanelRows,
          "-row product differ in bits on this machine; answers would depend on the batch"));
    }
  }
  const auto agrees = [&](int count) {
    for (int first = 0; first < kPanelRows; first += count) {
      if (!Agrees(input, whole, first, count)) return false;
    }
    return true;
  };
  sizes.small = agrees(kSmallRows);
  sizes.medium = agrees(kMediumRows);
  const TeamScope one(1);
  sizes.whole_team = !agrees(kPanelRows) || (sizes.medium && !agrees(kMediumRows)) ||
                     (sizes.small && !agrees(kSmallRows));
  sizes.large = !sizes.medium || out <= kWideOutput;
  return absl::OkStatus();
}

int NextPanel(PanelSizes sizes, int64_t left) {
  const auto padded = [left](int64_t panel) { return (left + panel - 1) / panel * panel; };
  if (!sizes.large && left >= kMediumRows) return kMediumRows;
  if (left >= kPanelRows) return kPanelRows;
  // A panel has a fixed price of about 16 rows; small ones run at two thirds of the rate.
  int64_t best = kPanelRows, choice = kPanelRows;
  if (sizes.medium && padded(kMediumRows) + 16 < best) {
    best = padded(kMediumRows) + 16;
    choice = kMediumRows;
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
  absl::Status status = GuardTorch(name, [&] {
    const c10::InferenceMode inference;
    packed = std::make_unique<Packed>(
        FindOperator("mkldnn::_linear_pointwise").typed<LinearSignature>());
    packed->in = in;
    packed->out = out;
    packed->compute = compute;
    const Tensor plain = at::from_blob(const_cast<float*>(weight.data()), {out, in}, at::kFloat);
    packed->weight = FindOperator("mkldnn::_reorder_linear_weight")
                         .typed<PackSignature>()
                         .call(plain.to(TorchType(compute)), std::nullopt);
    const auto known = rules.known.find({out, in, compute});
    if (known != rules.known.end()) {
      packed->sizes = known->second;
    } else {
      chosen = packed->ChooseSizes(name);
    }
  });
  if (!status.ok()) return status;
  if (!chosen.ok()) return chosen;
  rules.known[{out, in, compute}] = packed->sizes;
  return Linear(std::move(packed));
}

Linear::Linear(std::unique_ptr<Packed> packed) : packed_(std::move(packed)) {}
Linear::Linear(Linear&&) noexcept = default;
Linear& Linear::operator=(Linear&&) noexcept = default;
Linear::~Linear() = default;

int64_t Linear::in() const { return packed_->in; }
int64_t Linear::out() const { return packed_->out; }
Compute Linear::compute() const { return packed_->compute; }
PanelSizes Linear::sizes() const { return packed_->sizes; }
int64_t Linear::bytes() const {
  return packed_->in * packed_->out * ElementBytes(packed_->compute);
}

PanelOutput Linear::Panel(const void* x, int panel_rows) const {
  Tensor y = packed_->Run(x, panel_rows);
  void* data = y.mutable_data_ptr();
  return PanelOutput(y.unsafeReleaseTensorImpl(), data);
}

}  // namespace longview::models
