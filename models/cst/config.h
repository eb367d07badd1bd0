// config.json of a Composite Slice Transformer directory (CSTForSequenceClassification,
// CSTForMaskedLM, CSTForCausalLM): Lee et al., "Composite Slice Transformer", ICLR 2023. No code
// and no checkpoint was published, so the keys are our format; where the paper leaves a choice, the
// key names it. Unknown keys and values that the formulas do not cover are refused by name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/config/common_config.h"
#include "models/dense/rowwise.h"
#include "models/layers/block_tail.h"
#include "nlohmann/json_fwd.hpp"

namespace longview::models {

enum class CstHead {
  kClassifier,  // lra_classifier: mean, one hidden layer with ReLU.
  kMatching,    // lra_matching: two documents, encoded one by one and compared.
  kPooled,      // sequence_classification: mean, BERT's pooler, a linear.
  kMaskedLm,
  kCausalLm,
};

enum class CstPositions {
  kMultiScale,    // ms_vipe: added to queries and keys of both scales, in every layer.
  kConventional,  // One table, added to the embeddings.
  kNone,
};

// How the tokens of a slice become its embedding.
enum class CstPooling { kMean, kMax, kLinear };

enum class CstOrder {
  kComposition,  // Slices are pooled from what local attention gave.
  kParallel,     // Both scales read the layer's input.
  kGlobalFirst,  // Local attention reads the input and what global attention gave.
};

struct CstConfig {
  std::string architecture;  // architectures[0]
  CstHead head = CstHead::kPooled;
  int vocab = 0;
  int width = 0;            // D
  int embedding_width = 0;  // D_e
  int layers = 0;
  int heads = 0;
  int intermediate = 0;  // F
  int most_tokens = 0;   // N_max, max_position_embeddings.
  Activation activation = Activation::kGelu;
  float norm_eps = 0;

  int slice = 0;      // L
  int extension = 0;  // e, tokens per side; causal: on the left.
  bool shared_scales = true;
  bool output_projection = true;
  bool attention_bias = true;
  CstPositions positions = CstPositions::kMultiScale;
  bool shared_tables = true;   // One pair of position tables for all layers.
  bool tiled = false;          // An extension key's position is that of its own slice.
  bool zero_boundary = false;  // Places outside the sequence are zero tokens, not absent.
  bool mask_empty_slices = true;
  bool shifted_before = false;  // causal, global_query_shift `embedding`.
  CstPooling slice_pooling = CstPooling::kMean;
  CstOrder order = CstOrder::kComposition;
  int mixer_size = 0;  // Hidden places of the `mlp` local mixer; 0: local attention.

  NormPlace norms = NormPlace::kPre;
  bool final_norm = true;
  bool embedding_norm = false;
  float embedding_scale = 1;
  int types = 0;
  bool id_zero_masks = false;

  bool mean_over_limit = false;  // mean_padded: the divisor is N_max.
  int head_hidden = 0;           // classifier_hidden_size
  bool differences = true;       // Pairs: [a; b; a b; a - b], else [a; b].
  bool pooler = true;
  bool tied = true;
  bool head_bias = false;
  std::vector<int> cutoffs;  // First word of each tail of an adaptive softmax; empty: none.
  std::vector<std::string> labels;
  ProblemType problem_type = ProblemType::kSingleLabel;

  bool causal() const { return head == CstHead::kCausalLm; }
  int head_dim() const { return width / heads; }
  // S_max
  int most_slices() const { return (most_tokens + slice - 1) / slice; }
  // L_ext: keys that a slice's queries have places for.
  int local_keys() const { return slice + (causal() ? 1 : 2) * extension; }
  bool multi_scale() const { return positions == CstPositions::kMultiScale; }
  // Positions depend on the key's place beside the query's slice, not on the key alone.
  bool relative_keys() const { return multi_scale() && !tiled && extension > 0; }
};

// `common` is what the shared reader made of the same object. INVALID_ARGUMENT begins with
// `origin` and names key, value and what is possible.
absl::StatusOr<CstConfig> ParseCstConfig(const nlohmann::json& value, const CommonConfig& common,
                                         const std::string& origin);

// Architectures of the encoders, and of the language model.
std::span<const std::string_view> CstEncoderArchitectures();
std::span<const std::string_view> CstLmArchitectures();

}  // namespace longview::models
