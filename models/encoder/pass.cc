#include "models/encoder/pass.h"

#include <array>
#include <numeric>

#include "kernels/span/band_planner.h"

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

DeviceRunBytes LongestDocumentBytes(
    int tokens, absl::FunctionRef<DeviceRunBytes(RaggedBatch::Sequences)> most_bytes) {
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
