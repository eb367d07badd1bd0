// The autoregressive Longformer, "LongformerForCausalLM", as a family.
//
// Beltagy et al. 2020, section 4, train it; neither a HuggingFace class nor weights are public, so
// the definition is this project's:
//
//   * config.json and tensor names are those of LongformerForMaskedLM, `*_global` projections may
//     be missing and are not used; `tie_word_embeddings` as there.
//   * A layer's head sees the token itself and attention_window / 2 tokens before it,
//     `attention_dilation` (per layer, or per layer and head) apart; nothing after it, no global
//     tokens. Beltagy's "window" of an autoregressive layer is this one-sided reach plus one.
//   * The token at place t, from 0 on, has position pad_token_id + 1 + t, whatever the ids.
//   * Logits are those of the masked-LM head: decoder(LN(gelu(dense(x)))).
//
// A sequence keeps the widest window of its layers and nothing else: memory does not grow with
// what was read.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/decoder_stack/pass.h"
#include "models/encoder/model.h"
#include "models/generation/model/family.h"
#include "models/generation/passes/weighed_model.h"
#include "models/longformer_lm/weights.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

class LongformerLm final : public WeighedTokenModel<LongformerConfig, StackWeights> {
 public:
  LongformerLm(const LongformerConfig& config, const ModelDirectory& directory)
      : WeighedTokenModel(config, LoadLongformerLmWeights, directory),
        stack_(LongformerStack(config)) {}

  const char* family() const override { return stack_.family; }
  int vocab() const override { return stack_.vocab; }
  kernels::CacheShape Shape(kernels::DType blocks) const override {
    return StackCacheShape(stack_, blocks);
  }
  std::unique_ptr<TokenForward> Forward(const TokenFrame& frame, std::vector<TokenRun> runs,
                                        int64_t logit_rows) const override {
    return std::make_unique<StackPass>(StackContext{&stack_, &weights_, frame}, std::move(runs),
                                       logit_rows);
  }

 private:
  const StackConfig stack_;
};

// The keys are the masked LM's.
absl::StatusOr<LongformerConfig> ParseConfig(const nlohmann::json& json, CommonConfig common,
                                             const std::string& origin) {
  common.architecture = "LongformerForMaskedLM";
  return ParseLongformerConfig(json, common, origin);
}

}  // namespace

absl::StatusOr<GeneratorFamily> MakeLongformerLm(const ModelDirectory& directory) {
  ASSIGN_OR_RETURN(const LongformerConfig config, ReadTextConfig<ParseConfig>(directory));
  GeneratorFamily family(directory);
  family.model = std::make_unique<LongformerLm>(config, directory);
  family.max_tokens = MostTokens(directory, config.max_tokens());
  family.obstacle = OddWidth("width ", config.width);
  family.traits.pad = config.pad;
  return family;
}

}  // namespace longview::models
