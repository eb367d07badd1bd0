#include "models/ops/host_backend.h"
#include "models/ops/residual.h"

namespace longview::models::ops {

void Residual::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  const float* zeros = host.Zeros(x.width);
  // A norm that nothing reads in T is of fp32, whatever the model computes in.
  const RowKernels& kernels = y || out ? host.kernels() : host.floats();
  const bool pre = place == NormPlace::kPre && norm != nullptr;
  host.Each(x.count, [&](long i) {
    float* row = x.floats() + i * x.width;
    const void* added = y ? y.Row(i) : nullptr;
    void* to = out ? out.Row(i) : nullptr;
    if (pre) {
      kernels.residual_prenorm(row, added, zeros, norm->host.view(), x.width, to);
    } else if (norm != nullptr) {
      kernels.residual_norm(row, added, zeros, norm->host.view(), x.width, to);
    } else {
      kernels.residual_add(row, added, zeros, x.width, to);
    }
  });
}

void Narrow::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  const RowKernels& kernels = host.kernels();
  host.Each(x.count,
            [&](long i) { kernels.narrow(x.floats() + i * x.width, x.width, out.Row(i)); });
}

// Sums are fp32: rows of another type are widened once, not for every row that adds them.
void AddRows::OnHost(HostBackend& host) const {
  const bool widens = host.compute() != Compute::kFp32;
  Carver scratch = host.Scratch();
  float* const wide = widens ? scratch.Take<float>(added.count * added.width) : added.floats();
  if (!host.Runs(scratch)) return;
  const RowKernels& kernels = host.kernels();
  const float* zeros = host.Zeros(in.width);
  if (widens) {
    host.Each(added.count, [&](long i) {
      kernels.bias_widen(added.Row(i), zeros, added.width, wide + i * added.width);
    });
  }
  host.Each(in.count, [&](long i) {
    const int32_t row = index.data[i];
    kernels.bias_copy(in.Row(i), row < 0 ? zeros : wide + row * in.width, in.width, out.Row(i));
  });
}

}  // namespace longview::models::ops
