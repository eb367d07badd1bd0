// Keys of config.json that encoders and decoders of the Luna family share. There is no HuggingFace
// class; the names are those of our format.
// Thread-safe: pure functions of the reader given.
#pragma once

#include <string_view>

#include "models/config/json_reader.h"
#include "models/dense/rowwise.h"

namespace longview::models {

enum class LunaPositions { kLearned, kSinusoidal, kNone };

// How a norm's weight is stored: itself, its difference to one, or as 2 sigmoid(weight).
enum class LunaNormGain { kDirect, kOnePlus, kTwoSigmoid };

// Refuses keys that no model of the family has.
void RefuseUnknownLunaKeys(JsonReader& reader);

Activation ReadLunaActivation(JsonReader& reader, std::string_view key, std::string_view fallback);
LunaPositions ReadLunaPositions(JsonReader& reader, std::string_view key,
                                std::string_view fallback);
LunaNormGain ReadLunaGain(JsonReader& reader);  // layer_norm_gain

// `heads`, the value of `key`, must divide `width` into heads that attention can run.
void CheckLunaHeads(JsonReader& reader, std::string_view key, int heads, int width);

// A sinusoid needs at least two frequencies.
void CheckLunaSinusoids(JsonReader& reader, LunaPositions positions, int width);

}  // namespace longview::models
