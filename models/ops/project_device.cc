#include "models/ops/device_backend.h"
#include "models/ops/project.h"

namespace longview::models::ops {
namespace {

// Scratch of a linear whose results something is made of.
struct MadeRows {
  std::byte* products = nullptr;  // T [rows, out], with a panel's tail.
  float* sums = nullptr;          // [rows, out]
};

MadeRows CarveMadeRows(const Weight& weight, int64_t rows, Compute compute, Carver& carver) {
  MadeRows made;
  made.products = carver.TakeBytes(
      static_cast<size_t>((rows + kDevicePanelTail) * weight.out * ElementBytes(compute)));
  made.sums = carver.Take<float>(rows * weight.out);
  return made;
}

}  // namespace

void Project::OnDevice(DeviceBackend& device) const {
  const bool widens = out.element != ElementBytes(device.compute());
  Carver scratch = device.Scratch();
  void* const y = widens ? device.TakePanels(weight, in.count, scratch) : out.data;
  if (!device.Runs(scratch)) return;
  device.Timed(&RunTimes::linears, [&] {
    device.Multiply(weight, in, y);
    if (widens) return device.Widen(weight, y, out);
    AddBias(device.device(), weight.device, y, in.count, Activation::kNone);
  });
}

void ProjectRotated::OnDevice(DeviceBackend& device) const {
  if (!device.Runs()) return;
  device.Timed(&RunTimes::linears, [&] {
    const DeviceRotary angles = {rotary.angles->device(), rotary.places.data,
                                 rotary.angles->width(), rotary.columns};
    ApplyRotated(device.device(), weight.device, angles, in.data, in.count, out.data);
  });
}

void ProjectPlaces::OnDevice(DeviceBackend& device) const {
  if (!device.Runs()) return;
  device.Timed(&RunTimes::linears, [&] {
    MultiplyRows(device.device(), weight.device, in.data, in.count, out.data);
    const kernels::cuda::PlaceBiases args = {
        out.data, bias ? bias->device() : weight.device.bias, entries.data,
        in.count, static_cast<int32_t>(weight.out),           device.type()};
    device.Check(device.api().encoder.place_bias(device.stream(), args), "biases of places");
  });
}

void ProjectAdded::OnDevice(DeviceBackend& device) const {
  Carver scratch = device.Scratch();
  const MadeRows made = CarveMadeRows(weight, in.count, device.compute(), scratch);
  if (!device.Runs(scratch)) return;
  device.Timed(&RunTimes::linears, [&] {
    device.Multiply(weight, in, made.products);
    const DeviceRows rows = device.RowsOf(x.width);
    if (place == NormPlace::kPre) {
      return rows.AddPrenorm(x.floats(), made.products, weight.device.bias, norm.device, x.count,
                             input.data);
    }
    rows.Add(x.floats(), made.products, weight.device.bias, &norm.device, x.count,
             input.data == x.data ? nullptr : input.data);
  });
}

void ProjectActivated::OnDevice(DeviceBackend& device) const {
  Carver scratch = device.Scratch();
  const MadeRows made = CarveMadeRows(weight, in.count, device.compute(), scratch);
  if (!device.Runs(scratch)) return;
  device.Timed(&RunTimes::linears, [&] {
    device.Multiply(weight, in, made.products);
    AddBias(device.device(), weight.device, made.products, in.count, activation);
    const auto bytes = static_cast<uint64_t>(in.count * weight.out) * sizeof(float);
    device.Check(device.api().fill_zero(device.stream(), made.sums, bytes), "zeros");
    device.RowsOf(weight.out)
        .Add(made.sums, made.products, nullptr, &norm.device, in.count, out.data);
  });
}

}  // namespace longview::models::ops
