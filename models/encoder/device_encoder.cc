#include "models/encoder/device_encoder.h"

#include "absl/strings/str_cat.h"

namespace longview::models {
namespace {

// Moves `count` floats from *next on.
std::vector<float> TakeRows(size_t count, const float** next) {
  std::vector<float> rows(*next, *next + count);
  *next += count;
  return rows;
}

}  // namespace

DeviceEncoderBatch::DeviceEncoderBatch(const Device& device, DeviceWorkspace& workspace,
                                       const DeviceEncoderLayers& layers,
                                       DeviceEncoderLayers::Sequences sequences, int64_t width,
                                       EncoderTimes* times)
    : layers_(layers),
      sequences_(sequences.begin(), sequences.end()),
      width_(static_cast<size_t>(width)),
      rows_(sequences.size()),
      run_(device, workspace, *this, times) {}

std::string DeviceEncoderBatch::NameOf(int item) const {
  return absl::StrCat("a document of ", sequences_[item]->tokens(), " tokens");
}

std::unique_ptr<DevicePart> DeviceEncoderBatch::Plan(std::span<const int> items) const {
  std::vector<const EncoderSequence*> sequences;
  for (const int item : items) sequences.push_back(sequences_[item]);
  return layers_.Plan(sequences);
}

void DeviceEncoderBatch::Keep(std::span<const int> items, const std::byte* results) {
  const auto* next = reinterpret_cast<const float*>(results);
  for (const int item : items) {
    rows_[item].wanted = TakeRows(sequences_[item]->wanted.size() * width_, &next);
  }
  for (const int item : items) {
    const auto extra = static_cast<size_t>(layers_.ExtraRows(*sequences_[item]));
    rows_[item].extra = TakeRows(extra * width_, &next);
  }
}

}  // namespace longview::models
