#include "models/modernbert/rotary_keys.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"

namespace longview::models {
namespace {

using nlohmann::json;

constexpr double kFullTheta = 160000, kSlidingTheta = 10000;

// Attention's factor of YaRN: given, from two mscales, or from the factor.
double AttentionFactor(JsonReader& reader, double factor) {
  if (reader.Has("attention_factor")) return reader.Number("attention_factor");
  const auto scale = [&](double mscale) {
    return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1;
  };
  const double mscale = reader.NumberOr("mscale", 0), all = reader.NumberOr("mscale_all_dim", 0);
  return mscale != 0 && all != 0 ? scale(mscale) / scale(all) : scale(1);
}

RotaryConfig ReadSet(JsonReader& reader, double theta, int max_positions) {
  RotaryConfig rotary;
  rotary.theta = reader.NumberOr("rope_theta", theta);
  if (!(rotary.theta > 1)) reader.Refuse("rope_theta", "a number above 1");
  if (reader.Has("type") && !reader.Has("rope_type")) {
    reader.Refuse("type", "rope_type: transformers does not read the older name here");
  }
  const std::string type = reader.ChoiceOr("rope_type", "default", {"default", "linear", "yarn"});
  if (type == "default") return rotary;
  rotary.factor = reader.Number("factor");
  if (!(rotary.factor > 0)) reader.Refuse("factor", "a number above 0");
  rotary.type = RotaryConfig::Type::kLinear;
  if (type == "linear") return rotary;
  rotary.type = RotaryConfig::Type::kYarn;
  rotary.original_positions = static_cast<double>(
      reader.IntOr("original_max_position_embeddings", max_positions, 1));
  rotary.beta_fast = reader.NumberOr("beta_fast", 32);
  rotary.beta_slow = reader.NumberOr("beta_slow", 1);
  if (!(rotary.beta_fast > 0)) reader.Refuse("beta_fast", "a number above 0");
  if (!(rotary.beta_slow > 0)) reader.Refuse("beta_slow", "a number above 0");
  rotary.attention_factor = AttentionFactor(reader, rotary.factor);
  return rotary;
}

// rope_parameters.<type>, with what the flat rope_scaling of release 4 says on top.
RotaryConfig ReadType(JsonReader& reader, const char* type, double theta,
                      const TransformerConfig& config) {
  json set = json::object();
  if (const json* nested = reader.Find("rope_parameters")) {
    const auto own = nested->find(type);
    if (own != nested->end() && !own->is_object()) {
      reader.Refuse("rope_parameters", absl::StrCat("an object at ", type));
      return {};
    }
    if (own != nested->end()) set = *own;
  }
  if (const json* scaling = reader.Find("rope_scaling")) {
    if (!scaling->is_object() || (scaling->contains("type") && !scaling->contains("rope_type"))) {
      reader.Refuse("rope_scaling", "an object with rope_type, the name that transformers reads");
      return {};
    }
    set.update(*scaling);
  }
  JsonReader own(set, absl::StrCat(reader.origin(), ": rope_parameters of ", type));
  const RotaryConfig rotary = ReadSet(own, theta, config.max_tokens);
  reader.Merge(own.status());
  return rotary;
}

// One set for all layers, as other models have it, is not read by transformers.
void RefuseFlat(JsonReader& reader) {
  const json* nested = reader.Find("rope_parameters");
  if (nested == nullptr) return;
  bool by_type = nested->is_object();
  for (auto it = nested->begin(); by_type && it != nested->end(); ++it) {
    by_type = it.key() == "full_attention" || it.key() == "sliding_attention";
  }
  if (by_type) return;
  reader.Refuse("rope_parameters", "an object with full_attention and sliding_attention");
}

// Gives `rotary` to the layers of its kind.
void Assign(bool full, const RotaryConfig& rotary, TransformerConfig& config) {
  const auto at = std::find(config.rotary.begin(), config.rotary.end(), rotary);
  const auto index = static_cast<int>(at - config.rotary.begin());
  if (at == config.rotary.end()) config.rotary.push_back(rotary);
  for (TransformerConfig::Layer& layer : config.layers) {
    if ((layer.window < 0) == full) layer.rotary = index;
  }
}

}  // namespace

void ReadRotary(JsonReader& reader, TransformerConfig& config) {
  RefuseFlat(reader);
  double full_theta = reader.NumberOr("global_rope_theta", kFullTheta);
  // A null theta of the windows is the other one in release 4.
  const double sliding_theta = reader.IsNull("local_rope_theta") ? full_theta : kSlidingTheta;
  for (const bool full : {true, false}) {
    const bool used =
        std::any_of(config.layers.begin(), config.layers.end(),
                    [&](const auto& layer) { return (layer.window < 0) == full; });
    if (!used || !reader.status().ok()) continue;
    const RotaryConfig rotary =
        full ? ReadType(reader, "full_attention", full_theta, config)
             : ReadType(reader, "sliding_attention",
                        reader.NumberOr("local_rope_theta", sliding_theta), config);
    if (full) full_theta = rotary.theta;
    Assign(full, rotary, config);
  }
  if (reader.Has("rope_theta") && reader.Number("rope_theta") != full_theta) {
    reader.Refuse("rope_theta", absl::StrCat("the theta of full layers, ", full_theta,
                                             ": releases of transformers disagree on this key"));
  }
}

}  // namespace longview::models
