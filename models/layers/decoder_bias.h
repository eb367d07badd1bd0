// The bias of a masked LM's decoder, which files hold under the decoder's name, the head's or both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/weight_loader.h"

namespace longview::models {

// Where the decoder is `tied` to the words, `own` and `shared` are one tensor under two names. Else
// the decoder's own counts, and the head's, `shared`, only where no other is stored.
std::vector<float> DecoderBias(const std::string& own, const std::string& shared, bool tied,
                               int64_t size, WeightLoader& load);

}  // namespace longview::models
