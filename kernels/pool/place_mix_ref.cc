#include "kernels/base/bfloat16.h"
#include "kernels/pool/place_mix.h"

namespace longview::kernels {

void MixPlacesRef(const PlaceMix& mix) {
  const auto value = [&](int64_t row, int channel) {
    const int64_t at = row * mix.row_stride + channel;
    if (mix.dtype == DType::kFloat32) return static_cast<const float*>(mix.rows)[at];
    return BFloat16ToFloat(static_cast<const uint16_t*>(mix.rows)[at]);
  };
  for (int k = 0; k < mix.wanted; ++k) {
    for (int channel = 0; channel < mix.channels; ++channel) {
      double sum = mix.bias[k];
      for (int j = 0; j < mix.places; ++j) {
        if (mix.visible != nullptr && mix.visible[j] == 0) continue;
        sum += double{mix.weights[int64_t{j} * mix.outputs + k]} * value(j, channel);
      }
      mix.out[k * mix.out_stride + channel] = static_cast<float>(sum);
    }
  }
}

}  // namespace longview::kernels
