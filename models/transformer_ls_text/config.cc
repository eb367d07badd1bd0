#include "models/transformer_ls_text/config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "kernels/span/plan.h"
#include "models/config/json_reader.h"

namespace longview::models {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 2> kArchitectures = {
    "TransformerLSForSequenceClassification", "TransformerLSForSequencePairClassification"};

void ReadSizes(JsonReader& reader, LsTextConfig& config) {
  constexpr int64_t kLarge = 1 << 24;
  const auto read = [&](std::string_view key, int64_t min, int64_t max) {
    return static_cast<int>(reader.Int(key, min, max));
  };
  config.vocab = read("vocab_size", 2, kLarge);
  config.width = read("d", 1, 1 << 16);
  config.heads = read("heads", 1, 1024);
  config.layers = read("layers", 1, 1024);
  config.intermediate = read("ff", 1, 1 << 20);
  config.positions = read("max_seq_len", 1, kLarge);
  config.window = std::max(read("window", -kLarge, kLarge), 0);
  config.rank = read("rank", 0, 1 << 14);
  config.norm_eps = static_cast<float>(reader.NumberOr("ln_eps", 1e-5));
  if (!reader.status().ok()) return;
  if (config.width % config.heads != 0) {
    reader.Refuse("d", absl::StrCat("a multiple of heads, ", config.heads));
  }
  if (config.head_dim() > kernels::kMaxHeadDim) {
    reader.Refuse("heads", absl::StrCat("heads of at most ", kernels::kMaxHeadDim, " channels"));
  }
  if (!(config.norm_eps >= 0)) reader.Refuse("ln_eps", "a number of at least 0");
}

LsClass ReadClass(JsonReader& reader) {
  const std::string mode = reader.ChoiceOr("cls_mode", "last_layer",
                                           {"last_layer", "all_layers", "first_token", "none"});
  if (mode == "none") return LsClass::kNone;
  if (mode == "all_layers") return LsClass::kAllLayers;
  return mode == "first_token" ? LsClass::kFirstToken : LsClass::kLastLayer;
}

// Without window and projection a token sees itself and the class vector: the published code runs
// that only where every layer is handed the learned vector.
void CheckTokensSeeSomething(JsonReader& reader, const LsTextConfig& config) {
  if (config.window > 0 || config.rank > 0) return;
  const bool learned = config.cls == LsClass::kAllLayers ||
                       (config.cls == LsClass::kLastLayer && config.layers == 1);
  if (learned) return;
  reader.Refuse("rank",
                "at least 1 where window is 0, unless cls_mode gives every layer the learned "
                "class vector");
}

}  // namespace

absl::StatusOr<LsTextConfig> ParseLsTextConfig(const json& value, const CommonConfig& common,
                                               const std::string& origin) {
  JsonReader reader(value, origin);
  reader.RefuseUnknown({"model_type",   "architectures",
                        "vocab_size",   "d",
                        "heads",        "layers",
                        "ff",           "max_seq_len",
                        "window",       "rank",
                        "cls_mode",     "pool_divisor",
                        "tied_weights", "ln_eps",
                        "pad_token_id", "num_labels",
                        "id2label",     "label2id",
                        "problem_type", "dtype",
                        "torch_dtype",  "transformers_version",
                        "_name_or_path"});
  reader.Choice("model_type", {"transformer_ls"});
  LsTextConfig config;
  config.architecture = common.architecture;
  if (config.architecture == kArchitectures[1]) config.head = EncoderHead::kPairClassification;
  ReadSizes(reader, config);
  config.cls = ReadClass(reader);
  config.mean_over_limit =
      reader.ChoiceOr("pool_divisor", "length", {"length", "max_seq_len"}) == "max_seq_len";
  config.tied = reader.BoolOr("tied_weights", false);
  if (reader.IntOr("pad_token_id", kLsMaskedId, -1) != kLsMaskedId) {
    reader.Refuse("pad_token_id", absl::StrCat(kLsMaskedId, ", the masked id of these models"));
  }
  if (!reader.status().ok()) return reader.status();
  CheckTokensSeeSomething(reader, config);
  if (config.positions <= config.first_position()) {
    reader.Refuse("max_seq_len", "at least 2 with cls_mode first_token");
  }
  if (config.mean_over_limit && config.cls != LsClass::kNone) {
    reader.Refuse("pool_divisor", "length, or cls_mode none: nothing else takes a mean");
  }
  config.labels = common.labels;
  config.problem_type = common.problem_type;
  if (!reader.status().ok()) return reader.status();
  return config;
}

std::span<const std::string_view> LsTextArchitectures() { return kArchitectures; }

}  // namespace longview::models
