#include "models/longformer/device_part.h"

#include <algorithm>

#include "models/longformer/device_bytes.h"

namespace longview::models {
namespace {

bool WantsAll(DeviceBatch::Sequences sequences) {
  return std::ranges::all_of(sequences, [](const EncoderSequence* sequence) {
    return static_cast<int>(sequence->wanted.size()) == sequence->tokens();
  });
}

}  // namespace

DeviceLongformerPart::DeviceLongformerPart(const DeviceEncoderContext& context,
                                           DeviceBatch::Sequences sequences)
    : context_(context),
      batch_(*context.config, sequences, !WantsAll(sequences)),
      bytes_(BytesOf(*context.config, context.compute, batch_)),
      steps_(context_, batch_, buffers_) {}

void DeviceLongformerPart::Carve(Carver& carver) {
  buffers_ = CarveDeviceBuffers(*context_.config, context_.compute, batch_, carver);
}

void DeviceLongformerPart::RunLayer(int layer, const DeviceTimer& timer) {
  timer.Run(&EncoderTimes::linears, [&] { steps_.ProjectLocal(layer); });
  timer.Run(&EncoderTimes::attention, [&] {
    steps_.AttendLocal(layer);
    steps_.AttendGlobal(layer);
  });
  timer.Run(&EncoderTimes::linears, [&] { steps_.Tail(layer); });
}

void DeviceLongformerPart::AddResults(DeviceResults& results) const {
  results.Add(steps_.Output(), bytes_.results);
}

}  // namespace longview::models
