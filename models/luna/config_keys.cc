#include "models/luna/config_keys.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/span/plan.h"

namespace longview::models {

void RefuseUnknownLunaKeys(JsonReader& reader) {
  reader.RefuseUnknown({"model_type",
                        "architectures",
                        "head",
                        "vocab_size",
                        "hidden_size",
                        "ffn_size",
                        "num_layers",
                        "num_heads",
                        "num_proj_heads",
                        "proj_len",
                        "dynamic_projection",
                        "tie_kv",
                        "tie_layer_weights",
                        "norm_position",
                        "embedding_layer_norm",
                        "activation",
                        "position_type",
                        "max_positions",
                        "embed_scale",
                        "layer_norm_eps",
                        "layer_norm_gain",
                        "legacy_proj_roles",
                        "causal_activation",
                        "pooling",
                        "strip_cls_for_proj_pooling",
                        "classifier_in_dim",
                        "classifier_out_dim",
                        "classifier_layers",
                        "classifier_activation",
                        "classification_head",
                        "pooler_activation",
                        "tie_word_embeddings",
                        "num_labels",
                        "id2label",
                        "label2id",
                        "problem_type",
                        "pad_token_id",
                        "bos_token_id",
                        "eos_token_id",
                        "unk_token_id",
                        "cls_token_id",
                        "mask_token_id",
                        "decoder_vocab_size",
                        "decoder_layers",
                        "decoder_ffn_size",
                        "decoder_heads",
                        "decoder_proj_heads",
                        "decoder_norm_position",
                        "decoder_position_type",
                        "decoder_max_positions",
                        "decoder_output_dim",
                        "share_all_embeddings",
                        "share_decoder_input_output_embed",
                        "decoder_start_token_id",
                        "dtype",
                        "torch_dtype",
                        "transformers_version"});
}

Activation ReadLunaActivation(JsonReader& reader, std::string_view key, std::string_view fallback) {
  const std::string name = reader.ChoiceOr(
      key, fallback, {"gelu", "gelu_accurate", "gelu_fast", "relu", "tanh", "linear"});
  if (name == "relu") return Activation::kRelu;
  if (name == "tanh") return Activation::kTanh;
  if (name == "linear") return Activation::kNone;
  return name == "gelu" ? Activation::kGelu : Activation::kGeluTanh;
}

LunaPositions ReadLunaPositions(JsonReader& reader, std::string_view key,
                                std::string_view fallback) {
  const std::string name = reader.ChoiceOr(key, fallback, {"learned", "sinusoidal", "none"});
  if (name == "none") return LunaPositions::kNone;
  return name == "learned" ? LunaPositions::kLearned : LunaPositions::kSinusoidal;
}

LunaNormGain ReadLunaGain(JsonReader& reader) {
  const std::string name =
      reader.ChoiceOr("layer_norm_gain", "direct", {"direct", "one_plus", "two_sigmoid"});
  if (name == "one_plus") return LunaNormGain::kOnePlus;
  return name == "direct" ? LunaNormGain::kDirect : LunaNormGain::kTwoSigmoid;
}

void CheckLunaHeads(JsonReader& reader, std::string_view key, int heads, int width) {
  if (width % heads == 0 && width / heads <= kernels::kMaxHeadDim) return;
  reader.Refuse(key, absl::StrCat("a divisor of hidden_size, ", width, ", with heads of at most ",
                                  kernels::kMaxHeadDim, " channels"));
}

void CheckLunaSinusoids(JsonReader& reader, LunaPositions positions, int width) {
  if (positions != LunaPositions::kSinusoidal || width >= 4) return;
  reader.Refuse("hidden_size", "at least 4 with position_type sinusoidal");
}

}  // namespace longview::models
