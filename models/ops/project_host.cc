#include <cstring>

#include "models/ops/host_backend.h"
#include "models/ops/project.h"

namespace longview::models {

OpWork ProductWork(const Weight& weight, const Rows& in) {
  const auto columns = static_cast<double>(weight.out);
  const double elements = static_cast<double>(in.count) * columns;
  return {.linear = elements * static_cast<double>(weight.in),
          .rows = elements,
          .panel_columns = in.few ? 0 : weight.out + ScratchColumns(weight)};
}

namespace ops {

void Project::OnHost(HostBackend& host) const {
  Carver scratch = host.Scratch();
  std::byte* const products = host.TakeProducts(weight, in, scratch);
  if (!host.Runs(scratch)) return;
  const float* bias = weight.host->bias.data();
  const bool widens = out.element != ElementBytes(host.compute());
  host.Multiply(weight, in, products, [&](int64_t row, std::byte* y) {
    if (widens) {
      host.kernels().bias_widen(y, bias, weight.out, out.floats() + row * out.stride);
    } else {
      host.kernels().bias_copy(y, bias, weight.out, out.Row(row));
    }
  });
}

void ProjectRotated::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  const float* bias = weight.host->bias.data();
  const int64_t dim = rotary.angles->width(), half = dim / 2;
  const int64_t rotated = rotary.columns * out.element;
  host.Multiply(weight, in, nullptr, [&](int64_t row, std::byte* y) {
    const float* cosines = rotary.angles->values(rotary.places.data[row]);
    host.kernels().bias_rotate(y, bias, cosines, cosines + half, rotary.columns / dim, half,
                               out.Row(row));
    host.kernels().bias_copy(y + rotated, bias + rotary.columns, weight.out - rotary.columns,
                             out.Row(row) + rotated);
  });
}

void ProjectPlaces::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  const float* values = bias != nullptr ? bias->values() : weight.host->bias.data();
  host.Multiply(weight, in, nullptr, [&](int64_t row, std::byte* y) {
    const int32_t entry = entries.data[row];
    if (entry < 0) {
      std::memset(out.Row(row), 0, static_cast<size_t>(out.row_bytes()));
    } else {
      host.kernels().bias_copy(y, values + entry * weight.out, weight.out, out.Row(row));
    }
  });
}

void ProjectAdded::OnHost(HostBackend& host) const {
  Carver scratch = host.Scratch();
  std::byte* const products = host.TakeProducts(weight, in, scratch);
  if (!host.Runs(scratch)) return;
  const float* bias = weight.host->bias.data();
  const auto add =
      place == NormPlace::kPre ? host.kernels().residual_prenorm : host.kernels().residual_norm;
  host.Multiply(weight, in, products, [&](int64_t row, std::byte* y) {
    add(x.floats() + row * x.width, y, bias, norm.host.view(), x.width, input.Row(row));
  });
}

void ProjectActivated::OnHost(HostBackend& host) const {
  Carver scratch = host.Scratch();
  std::byte* const products = host.TakeProducts(weight, in, scratch);
  if (!host.Runs(scratch)) return;
  const float* bias = weight.host->bias.data();
  const float* zeros = host.Zeros(weight.out);
  host.Multiply(weight, in, products, [&](int64_t row, std::byte* y) {
    host.kernels().bias_act(y, bias, weight.out, activation);
    host.kernels().bias_norm(y, zeros, norm.host.view(), weight.out, out.Row(row));
  });
}

}  // namespace ops
}  // namespace longview::models
