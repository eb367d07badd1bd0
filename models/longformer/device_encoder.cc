#include "models/longformer/device_encoder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "models/layers/stopwatch.h"
#include "models/longformer/heads.h"

namespace longview::models {
namespace {

bool WantsAll(std::span<const EncoderSequence* const> sequences) {
  return std::ranges::all_of(sequences, [](const EncoderSequence* sequence) {
    return static_cast<int>(sequence->wanted.size()) == sequence->tokens();
  });
}

}  // namespace

DeviceEncoderRun::DeviceEncoderRun(const DeviceEncoderContext& context, const EncoderContext& host,
                                   DeviceWorkspace& workspace, Sequences sequences,
                                   EncoderTimes* times)
    : context_(context),
      host_(host),
      workspace_(workspace),
      times_(times),
      sequences_(sequences.begin(), sequences.end()),
      dropped_(sequences.size()),
      rows_(sequences.size()) {
  Split(0, sequences_.size());
}

DeviceEncoderRun::~DeviceEncoderRun() {
  if (!holds_workspace_) return;
  // What was handed over may still read the workspace.
  (void)context_.device->api().synchronize(context_.device->stream());
  workspace_.GiveBack();
}

// Halves what does not fit until it does.
void DeviceEncoderRun::Split(size_t first, size_t count) {
  const Sequences all = sequences_;
  const Sequences some = all.subspan(first, count);
  DeviceBatch batch(*context_.config, some, !WantsAll(some));
  const DeviceRunBytes need = BytesOf(*context_.config, context_.compute, batch);
  if (need.Fits(workspace_.room())) {
    parts_.push_back({first, std::move(batch)});
    return;
  }
  if (count == 1) {
    throw DeviceError(absl::StrCat("a document of ", some[0]->tokens(), " tokens needs ",
                                   need.device(), " bytes of ", context_.device->name(),
                                   ", the model's workspace has ", workspace_.room().device()));
  }
  Split(first, count / 2);
  Split(first + count / 2, count - count / 2);
}

bool DeviceEncoderRun::Wanted(const Part& part) const {
  for (size_t i = 0; i < part.batch.size(); ++i) {
    if (!dropped_[part.first + i]) return true;
  }
  return false;
}

template <typename Body>
void DeviceEncoderRun::Timed(double EncoderTimes::*sum, Body&& body) {
  if (times_ == nullptr) return body();
  const Stopwatch watch(&(times_->*sum));
  body();
  context_.device->Wait();
}

void DeviceEncoderRun::BeginPart() {
  if (!holds_workspace_ && !workspace_.Take()) {
    throw DeviceError("the model's workspace is in use by another batch");
  }
  holds_workspace_ = true;
  DeviceBatch& batch = parts_[part_].batch;
  StagedLists lists(workspace_.pinned_lists(), workspace_.lists());
  batch.Stage(lists);
  context_.device->Check(
      context_.device->api().copy_in(context_.device->stream(), workspace_.lists(),
                                     workspace_.pinned_lists(), lists.used()),
      "a batch's lists");
  Carver carver(workspace_.buffers());
  buffers_ = CarveDeviceBuffers(*context_.config, context_.compute, batch, carver);
  DeviceLayers(context_, batch, buffers_).Embed();
}

void DeviceEncoderRun::RunLayer() {
  const DeviceLayers layers(context_, parts_[part_].batch, buffers_);
  Timed(&EncoderTimes::linears, [&] { layers.ProjectLocal(layer_); });
  Timed(&EncoderTimes::attention, [&] {
    layers.AttendLocal(layer_);
    layers.AttendGlobal(layer_);
  });
  Timed(&EncoderTimes::linears, [&] { layers.Tail(layer_); });
}

// The one point where the host waits.
void DeviceEncoderRun::EndPart() {
  const Part& part = parts_[part_];
  const auto width = static_cast<size_t>(context_.config->width);
  const size_t bytes = static_cast<size_t>(part.batch.outputs()) * width * sizeof(float);
  const Device& device = *context_.device;
  device.Check(device.api().copy_out(device.stream(), workspace_.pinned_results(),
                                     DeviceLayers(context_, part.batch, buffers_).Output(), bytes),
               "results");
  device.Wait();
  const auto* next = reinterpret_cast<const float*>(workspace_.pinned_results());
  for (size_t i = 0; i < part.batch.size(); ++i) {
    const size_t size = part.batch.sequence(i).wanted.size() * width;
    rows_[part.first + i].assign(next, next + size);
    next += size;
  }
}

bool DeviceEncoderRun::Advance() {
  while (part_ < parts_.size() && layer_ == 0 && !Wanted(parts_[part_])) ++part_;
  if (part_ == parts_.size()) return false;
  const Device::Turn turn(*context_.device);
  if (layer_ == 0) Timed(&EncoderTimes::rest, [&] { BeginPart(); });
  RunLayer();
  if (++layer_ < context_.config->layers) return true;
  EndPart();
  layer_ = 0;
  if (++part_ < parts_.size()) return true;
  workspace_.GiveBack();
  holds_workspace_ = false;
  return false;
}

std::vector<HeadOutput> DeviceEncoderRun::ComputeHeads(std::span<const HeadInput> inputs) const {
  return models::ComputeHeads(host_, inputs);
}

}  // namespace longview::models
