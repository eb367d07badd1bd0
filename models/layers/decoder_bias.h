// The bias of a masked LM's decoder, which files hold under the decoder's name, the head's or both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/weight_loader.h"

namespace longview::models {

// The bias [size]. `own` is the decoder's name of it, `shared` the head's. A decoder that is `tied`
// to the word embeddings has one tensor under both names; an untied one has its own, or the head's
// if no other is stored. Errors go to `load`.
std::vector<float> DecoderBias(const std::string& own, const std::string& shared, bool tied,
                               int64_t size, WeightLoader& load);

}  // namespace longview::models
