#include "models/ops/host_backend.h"
#include "models/ops/states.h"

namespace longview::models {

StatesRef StageStates(Backend& backend, std::span<const kernels::StateRow> rows) {
  return {backend.List(rows), static_cast<int64_t>(rows.size())};
}

namespace ops {

void LoadStates::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  const RowKernels& kernels = rows.element == sizeof(float) ? host.floats() : host.kernels();
  host.Each(states.count, [&](long i) {
    const kernels::StateRow& at = states.data[i];
    kernels.narrow(at.state + shift, rows.width, rows.Row(at.row));
  });
}

void StoreStates::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  const RowKernels& kernels = rows.element == sizeof(float) ? host.floats() : host.kernels();
  const float* zeros = host.Zeros(rows.width);
  host.Each(states.count, [&](long i) {
    const kernels::StateRow& at = states.data[i];
    kernels.bias_widen(rows.Row(at.row), zeros, rows.width, at.state + shift);
  });
}

}  // namespace ops
}  // namespace longview::models
