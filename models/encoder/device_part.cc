#include "models/encoder/device_part.h"

#include <array>
#include <numeric>

#include "models/device/device_attention.h"

namespace longview::models {
namespace {

// Wants all its rows; its last `padding` tokens are padding.
EncoderSequence MakeDocument(int tokens, int padding) {
  const auto count = static_cast<size_t>(tokens);
  EncoderSequence document;
  document.ids.assign(count, 0);
  document.positions.assign(count, 0);
  document.roles.assign(count, kernels::kLocalToken);
  for (int i = 0; i < padding; ++i) {
    document.roles[count - 1 - static_cast<size_t>(i)] = kernels::kMaskedToken;
  }
  document.padding = padding;
  document.wanted.resize(count);
  std::iota(document.wanted.begin(), document.wanted.end(), 0);
  return document;
}

}  // namespace

void DeviceEncoderPart::Count(std::initializer_list<const kernels::Plan*> plans,
                              int64_t result_rows, int64_t width) {
  StagedLists lists(nullptr, nullptr);
  Stage(lists);
  Carver carver(nullptr);
  Carve(carver);
  bytes_ = {lists.used(), carver.used(), static_cast<size_t>(result_rows * width) * sizeof(float)};
  most_bytes_ = bytes_;
  for (const kernels::Plan* plan : plans) {
    most_bytes_.lists += MaskedPlanBytes(*plan) - PlanBytes(*plan);
  }
}

std::vector<int32_t> DeviceEncoderPart::WantedRows() const {
  std::vector<int32_t> rows;
  for (int s = 0; s < batch_.size(); ++s) {
    for (const int32_t token : batch_.sequences()[s]->wanted) {
      rows.push_back(batch_.offsets()[s] + token);
    }
  }
  return rows;
}

DeviceEncoderPart::Tokens DeviceEncoderPart::StageTokens(StagedLists& lists, int64_t extra,
                                                         int32_t id, int32_t position) const {
  std::vector<int32_t> ids, positions, types;
  for (const EncoderSequence* sequence : batch_.sequences()) {
    ids.insert(ids.end(), sequence->ids.begin(), sequence->ids.end());
    positions.insert(positions.end(), sequence->positions.begin(), sequence->positions.end());
    types.insert(types.end(), sequence->types.begin(), sequence->types.end());
    types.resize(ids.size());
  }
  ids.insert(ids.end(), static_cast<size_t>(extra), id);
  positions.insert(positions.end(), static_cast<size_t>(extra), position);
  types.resize(ids.size());
  return {lists.Add(ids), lists.Add(positions), lists.Add(types), lists.Add(batch_.roles())};
}

DeviceRunBytes LongestDocumentBytes(
    int tokens,
    absl::FunctionRef<DeviceRunBytes(DeviceEncoderPart::Sequences)> most_bytes) {
  DeviceRunBytes most;
  // Padding begins a tile of its own.
  for (const int padding : {0, 1}) {
    const EncoderSequence document = MakeDocument(tokens, tokens > 1 ? padding : 0);
    const std::array<const EncoderSequence*, 1> one = {&document};
    most.Include(most_bytes(one));
  }
  return most;
}

}  // namespace longview::models
