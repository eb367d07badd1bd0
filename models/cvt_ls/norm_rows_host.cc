#include "models/cvt_ls/norm_rows.h"
#include "models/layers/map_rows.h"
#include "models/ops/host_backend.h"

namespace longview::models::ops {

void NormRows::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  const float* zeros = host.Zeros(rows.width);
  PanelContext{&host.pool(), nullptr, host.times()}.Each(rows.count, [&](long i) {
    host.kernels().bias_norm(rows.Row(i), zeros, norm.host.view(), rows.width, rows.Row(i));
  });
}

}  // namespace longview::models::ops
