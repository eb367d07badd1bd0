#include "models/vil/open_globals.h"

#include <stdexcept>

#include "models/ops/host_backend.h"

namespace longview::models::ops {
namespace {

[[noreturn]] void ThrowOpenOnDevice() {
  throw std::logic_error("maps on a device are never in slices");
}

}  // namespace

void BeginOpenRows::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  const Stopwatch watch = host.Timed(&RunTimes::attention);
  open.emplace(shape, host.context(), buffers);
  open->Begin(queries.data, queries.stride);
}

void AppendOpenRows::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  const Stopwatch watch = host.Timed(&RunTimes::attention);
  open->Append({keys.data, values.data, keys.stride, keys.count}, bias);
}

void FinishOpenRows::OnHost(HostBackend& host) const {
  if (host.Runs()) open->Finish(out.data);
}

void BeginOpenRows::OnDevice(DeviceBackend&) const { ThrowOpenOnDevice(); }
void AppendOpenRows::OnDevice(DeviceBackend&) const { ThrowOpenOnDevice(); }
void FinishOpenRows::OnDevice(DeviceBackend&) const { ThrowOpenOnDevice(); }

}  // namespace longview::models::ops
