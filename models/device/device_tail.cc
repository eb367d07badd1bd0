#include "models/device/device_tail.h"

#include "models/device/device_rows.h"

namespace longview::models {

void RunDeviceTail(const Device& device, const DeviceTail& tail, const DeviceTailRows& rows) {
  const Compute compute = tail.expand->compute;
  const auto multiply = rows.few ? MultiplyFewRows : MultiplyRows;
  const DeviceRows row_work(device, compute, tail.contract->out);
  const auto add = [&](const void* y, const float* bias, const DeviceNorm* norm) {
    if (tail.norms == NormPlace::kPre && norm != nullptr) {
      return row_work.AddPrenorm(rows.x, y, bias, *norm, rows.rows, rows.input);
    }
    const bool copies = static_cast<void*>(rows.input) != rows.x;
    row_work.Add(rows.x, y, bias, norm, rows.rows, copies ? rows.input : nullptr);
  };
  if (tail.out == nullptr) {
    add(rows.z, nullptr, tail.after_attention);
  } else {
    multiply(device, *tail.out, rows.z, rows.rows, rows.added);
    add(rows.added, tail.out->bias, tail.after_attention);
  }
  multiply(device, *tail.expand, rows.input, rows.rows, rows.wide);
  if (tail.gate != nullptr) {
    multiply(device, *tail.gate, rows.input, rows.rows, rows.gates);
    GateRows(device, *tail.expand, rows.wide, *tail.gate, rows.gates, rows.rows, tail.activation);
  } else {
    AddBias(device, *tail.expand, rows.wide, rows.rows, tail.activation);
  }
  multiply(device, *tail.contract, rows.wide, rows.rows, rows.added);
  add(rows.added, tail.contract->bias, tail.after_layer);
  if (tail.last != nullptr) row_work.Norm(rows.x, *tail.last, rows.rows, nullptr);
}

}  // namespace longview::models
