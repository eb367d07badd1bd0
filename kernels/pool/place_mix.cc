#include "kernels/pool/place_mix.h"

#include <algorithm>

#include "kernels/base/check.h"
#include "kernels/base/workspace.h"
#include "kernels/pool/weighted_sum.h"

namespace longview::kernels {

void MixPlaces(const PlaceMix& mix) {
  KERNEL_CHECK(mix.places >= 0 && mix.channels >= 1 && mix.wanted <= mix.outputs);
  alignas(kAlignment) float sums[kSumColumns * kSumChannels];
  WeightedSum request;
  request.weight_stride = mix.outputs;
  request.dtype = mix.dtype;
  request.value_stride = mix.row_stride;
  request.visible = mix.visible;
  request.tokens = mix.places;
  request.sums = sums;
  for (int channel = 0; channel < mix.channels; channel += kSumChannels) {
    request.channels = std::min(kSumChannels, mix.channels - channel);
    request.values =
        static_cast<const std::byte*>(mix.rows) + static_cast<size_t>(channel) * SizeOf(mix.dtype);
    for (int k = 0; k < mix.wanted; k += kSumColumns) {
      request.columns = std::min(kSumColumns, mix.wanted - k);
      request.weights = mix.weights + k;
      SumWeighted(request);
      for (int i = 0; i < request.columns; ++i) {
        float* out = mix.out + (k + i) * mix.out_stride + channel;
        for (int c = 0; c < request.channels; ++c) {
          out[c] = mix.bias[k + i] + sums[i * kSumChannels + c];
        }
      }
    }
  }
}

}  // namespace longview::kernels
