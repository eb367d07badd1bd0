// The autoregressive Composite Slice Transformer as a family.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "models/cst/lm_cache.h"
#include "models/cst/lm_pass.h"
#include "models/encoder/model.h"
#include "models/generation/model/family.h"
#include "models/generation/passes/weighed_model.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

class CstLm final : public WeighedTokenModel<CstConfig, CstWeights> {
 public:
  CstLm(const CstConfig& config, const ModelDirectory& directory)
      : WeighedTokenModel(config, LoadCstWeights, directory) {}

  const char* family() const override { return "cst"; }
  int vocab() const override { return config_.vocab; }
  int prefill_alignment() const override { return CstPrefillAlignment(config_); }
  // A token that ends its slice.
  int64_t CostliestPosition(int max_tokens) const override {
    return std::max<int64_t>(max_tokens / config_.slice * config_.slice - 1, 0);
  }
  kernels::CacheShape Shape(kernels::DType blocks) const override {
    return CstCacheShape(config_, blocks);
  }
  std::unique_ptr<TokenForward> Forward(const TokenFrame& frame, std::vector<TokenRun> runs,
                                        int64_t logit_rows) const override {
    return std::make_unique<CstLmPass>(config_, weights_, frame, std::move(runs), logit_rows);
  }
};

}  // namespace

absl::StatusOr<GeneratorFamily> MakeCstLm(const ModelDirectory& directory) {
  ASSIGN_OR_RETURN(const CstConfig config, ReadTextConfig<ParseCstConfig>(directory));
  GeneratorFamily family(directory);
  family.model = std::make_unique<CstLm>(config, directory);
  family.max_tokens = MostTokens(directory, config.most_tokens);
  family.obstacle = OddWidth("width ", config.width);
  return family;
}

}  // namespace longview::models
