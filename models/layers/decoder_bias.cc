#include "models/layers/decoder_bias.h"

#include <array>

namespace longview::models {

std::vector<float> DecoderBias(const std::string& own, const std::string& shared, bool tied,
                               int64_t size, WeightLoader& load) {
  if (!tied && load.source().Has(own)) {
    load.source().Ignore(shared);
    return load.Vector(own, size);
  }
  const std::array<std::string, 2> names = {shared, own};
  return load.Copy(load.GetTied(names, {size}));
}

}  // namespace longview::models
