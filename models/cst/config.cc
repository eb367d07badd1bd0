#include "models/cst/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/span/plan.h"
#include "models/config/json_reader.h"

namespace longview::models {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 2> kEncoders = {"CSTForSequenceClassification",
                                                       "CSTForMaskedLM"};
constexpr std::array<std::string_view, 1> kLanguageModels = {"CSTForCausalLM"};

class Parser {
 public:
  Parser(const json& value, const CommonConfig& common, const std::string& origin)
      : reader_(value, origin), common_(common) {}

  absl::StatusOr<CstConfig> Parse();

 private:
  void RefuseUnknown();
  void ReadHead();
  void ReadSizes();
  void ReadSlices();
  void ReadScales();
  void ReadLayers();
  void ReadOutputs();
  void ReadSoftmax();
  void CheckCausal();

  int Size(std::string_view key, int64_t max) { return static_cast<int>(reader_.Int(key, 1, max)); }
  // Whether the choice is the second of two.
  bool Second(std::string_view key, std::string_view first, std::string_view second) {
    return reader_.ChoiceOr(key, first, {first, second}) == second;
  }

  JsonReader reader_;
  const CommonConfig& common_;
  CstConfig config_;
};

void Parser::RefuseUnknown() {
  reader_.RefuseUnknown({
      "model_type",
      "architectures",
      "head",
      "vocab_size",
      "hidden_size",
      "embedding_size",
      "num_hidden_layers",
      "num_attention_heads",
      "intermediate_size",
      "hidden_act",
      "layer_norm_eps",
      "max_position_embeddings",
      "is_decoder",
      "slice_length",
      "extension_ratio",
      "share_local_global",
      "attention_output_projection",
      "attention_bias",
      "position_embedding",
      "ms_vipe_shared_across_layers",
      "local_position_extension",
      "ext_boundary",
      "mask_empty_slices",
      "first_slice_global",
      "global_query_shift",
      "slice_pooling",
      "msmra_order",
      "local_mixer",
      "local_mixer_size",
      "norm_position",
      "final_layer_norm",
      "embedding_layer_norm",
      "embedding_scale",
      "type_vocab_size",
      "pad_mask_source",
      "pad_token_id",
      "bos_token_id",
      "eos_token_id",
      "sep_token_id",
      "pooling",
      "num_labels",
      "id2label",
      "label2id",
      "problem_type",
      "classifier_hidden_size",
      "pair_interaction",
      "pooler",
      "tie_word_embeddings",
      "lm_head",
      "lm_head_bias",
      "adaptive_cutoffs",
      "dtype",
      "torch_dtype",
      "transformers_version",
      "_name_or_path",
  });
}

void Parser::ReadHead() {
  config_.architecture = common_.architecture;
  if (config_.architecture == kLanguageModels[0]) {
    reader_.ChoiceOr("head", "causal_lm", {"causal_lm"});
    config_.head = CstHead::kCausalLm;
  } else if (config_.architecture == kEncoders[1]) {
    reader_.ChoiceOr("head", "masked_lm", {"masked_lm"});
    config_.head = CstHead::kMaskedLm;
  } else {
    const std::string head =
        reader_.ChoiceOr("head", "sequence_classification",
                         {"lra_classifier", "lra_matching", "sequence_classification"});
    config_.head = head == "lra_classifier" ? CstHead::kClassifier
                   : head == "lra_matching" ? CstHead::kMatching
                                            : CstHead::kPooled;
  }
  if (reader_.BoolOr("is_decoder", config_.causal()) != config_.causal()) {
    reader_.Refuse("is_decoder", config_.causal() ? "true for a CSTForCausalLM"
                                                  : "false unless the class is CSTForCausalLM");
  }
}

void Parser::ReadSizes() {
  constexpr int64_t kLarge = 1 << 24;
  config_.vocab = Size("vocab_size", kLarge);
  config_.width = Size("hidden_size", 1 << 16);
  config_.embedding_width =
      static_cast<int>(reader_.IntOr("embedding_size", config_.width, 1, 1 << 16));
  config_.layers = Size("num_hidden_layers", 1024);
  config_.heads = Size("num_attention_heads", 1024);
  config_.intermediate = Size("intermediate_size", 1 << 20);
  config_.most_tokens = Size("max_position_embeddings", kLarge);
  config_.types = static_cast<int>(reader_.IntOr("type_vocab_size", 0, 0, 1 << 16));
  config_.norm_eps = static_cast<float>(reader_.NumberOr("layer_norm_eps", 1e-5));
  config_.embedding_scale = static_cast<float>(reader_.NumberOr("embedding_scale", 1));
  if (!reader_.status().ok()) return;
  if (config_.width % config_.heads != 0) {
    reader_.Refuse("hidden_size",
                   absl::StrCat("a multiple of num_attention_heads, ", config_.heads));
  }
  if (config_.head_dim() > kernels::kMaxHeadDim) {
    reader_.Refuse("num_attention_heads",
                   absl::StrCat("heads of at most ", kernels::kMaxHeadDim, " channels"));
  }
  if (!(config_.norm_eps >= 0)) reader_.Refuse("layer_norm_eps", "a number of at least 0");
  if (!std::isfinite(config_.embedding_scale)) reader_.Refuse("embedding_scale", "a finite number");
}

// e = (alpha - 1) L / 2, which is a whole number of at most L.
void Parser::ReadSlices() {
  config_.slice = Size("slice_length", 1 << 16);
  const double ratio = reader_.NumberOr("extension_ratio", 1);
  if (!reader_.status().ok()) return;
  const double extension = (ratio - 1) * config_.slice / 2;
  if (!(ratio >= 1 && ratio <= 3)) {
    reader_.Refuse("extension_ratio", "a number in [1, 3]: further tokens are two slices away");
  } else if (std::abs(extension - std::round(extension)) > 1e-6) {
    reader_.Refuse("extension_ratio", absl::StrCat("a ratio that extends slices of ", config_.slice,
                                                   " by a whole number of tokens on each side"));
  } else {
    config_.extension = static_cast<int>(std::lround(extension));
  }
}

void Parser::ReadScales() {
  config_.shared_scales = reader_.BoolOr("share_local_global", true);
  config_.output_projection = reader_.BoolOr("attention_output_projection", true);
  config_.attention_bias = reader_.BoolOr("attention_bias", true);
  const std::string positions =
      reader_.ChoiceOr("position_embedding", "ms_vipe", {"ms_vipe", "conventional", "none"});
  config_.positions = positions == "ms_vipe" ? CstPositions::kMultiScale
                      : positions == "none"  ? CstPositions::kNone
                                             : CstPositions::kConventional;
  config_.shared_tables = reader_.BoolOr("ms_vipe_shared_across_layers", true);
  config_.tiled = Second("local_position_extension", "learned", "tiled");
  config_.zero_boundary = Second("ext_boundary", "mask", "zero");
  config_.mask_empty_slices = reader_.BoolOr("mask_empty_slices", true);
  reader_.ChoiceOr("first_slice_global", "zero", {"zero"});
  config_.shifted_before = Second("global_query_shift", "projected", "embedding");
  const std::string pooling = reader_.ChoiceOr("slice_pooling", "mean", {"mean", "max", "linear"});
  config_.slice_pooling = pooling == "mean"  ? CstPooling::kMean
                          : pooling == "max" ? CstPooling::kMax
                                             : CstPooling::kLinear;
  const std::string order =
      reader_.ChoiceOr("msmra_order", "composition", {"composition", "parallel", "global_first"});
  config_.order = order == "composition" ? CstOrder::kComposition
                  : order == "parallel"  ? CstOrder::kParallel
                                         : CstOrder::kGlobalFirst;
  if (!Second("local_mixer", "attention", "mlp")) return;
  config_.mixer_size = Size("local_mixer_size", 1 << 16);
  if (config_.causal() || config_.extension > 0) {
    reader_.Refuse("local_mixer",
                   "attention; mlp goes with extension_ratio 1 and models that are not causal");
  }
}

void Parser::ReadLayers() {
  const std::string act = reader_.ChoiceOr("hidden_act", "gelu", {"gelu", "gelu_tanh", "relu"});
  config_.activation = act == "gelu"   ? Activation::kGelu
                       : act == "relu" ? Activation::kRelu
                                       : Activation::kGeluTanh;
  const bool post = Second("norm_position", "pre", "post");
  config_.norms = post ? NormPlace::kPost : NormPlace::kPre;
  config_.final_norm = reader_.BoolOr("final_layer_norm", !post);
  config_.embedding_norm = reader_.BoolOr("embedding_layer_norm", false);
  config_.id_zero_masks = Second("pad_mask_source", "length", "nonzero_id");
}

void Parser::ReadOutputs() {
  config_.mean_over_limit = Second("pooling", "mean", "mean_padded");
  config_.head_hidden = static_cast<int>(
      reader_.IntOr("classifier_hidden_size", std::max(config_.intermediate, 1), 1, 1 << 20));
  config_.differences = !Second("pair_interaction", "nli", "concat");
  config_.pooler = !Second("pooler", "dense_tanh", "none");
  config_.tied = reader_.BoolOr("tie_word_embeddings", true);
  config_.labels = common_.labels;
  config_.problem_type = common_.problem_type;
}

void Parser::ReadSoftmax() {
  config_.head_bias = reader_.BoolOr("lm_head_bias", false);
  if (!Second("lm_head", "tied", "adaptive")) return;
  config_.cutoffs = {20000, 40000, 200000};
  if (reader_.Has("adaptive_cutoffs")) {
    const std::vector<int64_t> listed =
        reader_.IntList("adaptive_cutoffs", 1, std::max(config_.vocab - 1, 1));
    config_.cutoffs.assign(listed.begin(), listed.end());
  }
  const bool rising = std::adjacent_find(config_.cutoffs.begin(), config_.cutoffs.end(),
                                         std::greater_equal<>()) == config_.cutoffs.end();
  if (config_.cutoffs.empty() || !rising || config_.cutoffs.back() >= config_.vocab) {
    reader_.Refuse("adaptive_cutoffs",
                   absl::StrCat("rising word numbers below vocab_size, ", config_.vocab));
  }
  if (!config_.tied) reader_.Refuse("tie_word_embeddings", "true with an adaptive lm_head");
}

void Parser::CheckCausal() {
  if (config_.tied && config_.embedding_width != config_.width) {
    reader_.Refuse("tie_word_embeddings",
                   absl::StrCat("false where embedding_size is not hidden_size, ", config_.width));
  }
  // Section 4 of the definition knows no masked tokens.
  if (config_.id_zero_masks) reader_.Refuse("pad_mask_source", "length for a CSTForCausalLM");
}

absl::StatusOr<CstConfig> Parser::Parse() {
  RefuseUnknown();
  reader_.Choice("model_type", {"cst"});
  ReadHead();
  ReadSizes();
  ReadSlices();
  ReadScales();
  ReadLayers();
  ReadOutputs();
  if (config_.causal()) {
    ReadSoftmax();
    CheckCausal();
  }
  if (!reader_.status().ok()) return reader_.status();
  return std::move(config_);
}

}  // namespace

absl::StatusOr<CstConfig> ParseCstConfig(const json& value, const CommonConfig& common,
                                         const std::string& origin) {
  return Parser(value, common, origin).Parse();
}

std::span<const std::string_view> CstEncoderArchitectures() { return kEncoders; }
std::span<const std::string_view> CstLmArchitectures() { return kLanguageModels; }

}  // namespace longview::models
