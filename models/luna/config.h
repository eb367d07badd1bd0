// config.json of a Luna encoder directory (Ma et al. 2021): Long Range Arena classifiers and pair
// matchers, and the RoBERTa-style encoder with its masked-LM and classification heads. The keys are
// those of our format; there is no HuggingFace class. Unknown keys are refused by name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/config/common_config.h"
#include "models/dense/rowwise.h"
#include "models/encoder/facts.h"
#include "models/layers/block_tail.h"
#include "models/luna/config_keys.h"
#include "nlohmann/json_fwd.hpp"

namespace longview::models {

// The head on the encoder, by the published code.
enum class LunaHead {
  kLra,  // lra_classifier, lra_matching: hidden layers, then a linear without bias.
  kMaskedLm,
  kSentence,       // x_0 -> dense -> pooler activation -> out_proj
  kProjectedMax,   // pooling_classification_head: over the rows of P.
  kProjectedHead,  // attention_classification_head: x_0 attends to the rows of P.
  kNone,           // A decoder reads the last states and P.
};

enum class LunaPooling { kCls, kMean, kProjectedMean };  // Pooling of the LRA heads.

struct LunaConfig {
  std::string architecture;  // architectures[0]
  EncoderHead task = EncoderHead::kSequenceClassification;
  LunaHead head = LunaHead::kLra;
  int vocab = 0;
  int width = 0;         // d
  int intermediate = 0;  // F
  int layers = 0;        // Applied; with `tied_layers` one is stored.
  int heads = 0;         // H, of the unpack attention.
  int pack_heads = 0;    // H_p
  int projected = 0;     // l, rows of P.
  bool dynamic = true;   // Only the first min(l, tokens) rows are active.
  bool tied_kv = false;  // One projection for key and value, in the pack and in the unpack.
  bool tied_layers = false;
  NormPlace norms = NormPlace::kPost;
  bool embedding_norm = true;
  Activation activation = Activation::kGelu;
  LunaPositions positions = LunaPositions::kLearned;
  int max_tokens = 0;  // max_positions
  float embed_scale = 1;
  float norm_eps = 0;
  LunaNormGain gain = LunaNormGain::kDirect;
  bool legacy_roles = false;  // pc_proj and c_proj are stored under each other's name.
  LunaPooling pooling = LunaPooling::kCls;
  bool strip_class = false;  // The only or first document loses its first token.
  std::vector<int> hidden;   // Widths of the LRA head's hidden layers.
  Activation hidden_activation = Activation::kRelu;
  std::string head_name;  // Inside classification_heads.
  Activation pooler_activation = Activation::kTanh;
  bool tied_words = true;  // The masked LM's output, or with kNone the decoder's, is the embedding.
  int pad = 1;
  int eos = 2;
  int added = 0;  // cls_token_id or mask_token_id: the id behind the dictionary's.
  std::vector<std::string> labels;
  ProblemType problem_type = ProblemType::kSingleLabel;

  bool is_lra() const { return head == LunaHead::kLra; }
  // Width of what enters the LRA head.
  int features() const { return task == EncoderHead::kPairClassification ? 2 * width : width; }
  // Positions count from pad + 1.
  int position_rows() const { return max_tokens + pad + 1; }
};

// Whether the head reads rows of P.
inline bool ReadsProjected(const LunaConfig& config) {
  return config.head == LunaHead::kNone || config.head == LunaHead::kProjectedMax ||
         config.head == LunaHead::kProjectedHead ||
         (config.is_lra() && config.pooling == LunaPooling::kProjectedMean);
}

// `common` is what the shared reader made of the same object. INVALID_ARGUMENT begins with
// `origin` and names key, value and what is possible.
absl::StatusOr<LunaConfig> ParseLunaConfig(const nlohmann::json& json, const CommonConfig& common,
                                           const std::string& origin);

// The keys of sizes and layers alone, with the defaults of config.head; for models that have other
// parts. `reader` collects errors.
void ReadLunaEncoder(JsonReader& reader, LunaConfig& config);

std::span<const std::string_view> LunaArchitectures();

}  // namespace longview::models
