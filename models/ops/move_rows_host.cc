#include <cstring>

#include "models/ops/host_backend.h"
#include "models/ops/move_rows.h"

namespace longview::models::ops {

void Gather::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  const auto bytes = static_cast<size_t>(to.row_bytes());
  host.Each(rows.count, [&](long i) {
    if (rows.data[i] >= 0) std::memcpy(to.Row(i), from.Row(rows.data[i]), bytes);
  });
}

void LookUp::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  host.Each(rows.count, [&](long i) { table.CopyRow(rows.data[i], to.floats() + i * to.width); });
}

void Scatter::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  const auto bytes = static_cast<size_t>(to.row_bytes());
  host.Each(places.count, [&](long i) {
    if (places.data[i] >= 0) std::memcpy(to.Row(places.data[i]), from.Row(i), bytes);
  });
}

void Keep::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  for (int64_t i = 0; i < rows.count; ++i) MoveRows(x, rows.data[i], i, 1);
}

void Clear::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  const auto bytes = static_cast<size_t>(rows.row_bytes());
  host.Each(rows.count, [&](long i) { std::memset(rows.Row(i), 0, bytes); });
}

}  // namespace longview::models::ops
