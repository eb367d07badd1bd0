#include "models/transformer_ls/model.h"

#include <string>
#include <utility>
#include <vector>

#include "kernels/base/cpu_features.h"
#include "models/generation/model/family.h"
#include "models/status_macros.h"
#include "models/text/byte_codec.h"
#include "models/transformer_ls/cache_layout.h"
#include "models/transformer_ls/pass.h"

namespace longview::models {
namespace {

// Positions are relative and have no table, so only memory ends a text; longview.json may say
// otherwise.
constexpr int kMaxTokens = 1 << 17;

}  // namespace

LsLm::LsLm(const LsLmConfig& config, const Checkpoint& checkpoint, std::string origin,
           int max_tokens)
    : config_(config),
      checkpoint_(checkpoint),
      origin_(std::move(origin)),
      max_tokens_(max_tokens) {}

// Zero memory is seen where a window, or the memory, is not full.
std::vector<int> LsLm::ends() const {
  if (!config_.zero_memory) return {};
  return {config_.window, config_.memory};
}

kernels::CacheShape LsLm::Shape(kernels::DType blocks) const {
  return LsCacheShape(config_, blocks);
}

// Decoding reads its cache at the speed of memory: blocks are bf16 wherever a variant reads them
// so, even where its arithmetic is not the fastest.
ComputeContext LsLm::Host(Compute compute, const kernels::ParallelFor& pool) const {
  ComputeContext context(compute, pool);
  if (compute != Compute::kBf16) return context;
  context.isa = kernels::BestBf16Isa();
  for (const kernels::Isa isa : {kernels::Isa::kAvx512Bf16, kernels::Isa::kAmxBf16}) {
    if (IsaSupported(isa)) context.isa = isa;
  }
  return context;
}

absl::Status LsLm::Load(std::optional<WeightFormat> format, DeviceStore* store) {
  ASSIGN_OR_RETURN(LsLmWeights weights,
                   LoadLsLmWeights(config_, checkpoint_, origin_, format, store, max_tokens_));
  weights_ = std::move(weights);
  on_device_ = store != nullptr;
  return absl::OkStatus();
}

void LsLm::Loaded(const ComputeContext& host, kernels::DType blocks) {
  if (on_device_) {
    tables_ = std::make_unique<RelativeTables>(config_, weights_);
  } else {
    tables_ = std::make_unique<RelativeTables>(
        config_, weights_, host.compute, config_.pattern().MostSegmentIds(max_tokens_), *host.pool);
  }
  if (config_.zero_memory) zero_ = std::make_unique<ZeroBlocks>(config_, weights_, blocks);
}

double LsLm::TableBytes(int64_t tokens) const {
  return static_cast<double>(tables_->SegmentBytes(config_.pattern().MostSegmentIds(tokens)));
}

LsContext LsLm::ContextOf(const TokenFrame& frame) const {
  LsContext context;
  context.config = &config_;
  context.weights = &weights_;
  context.compute = frame.compute;
  context.tile_rows = frame.tile_rows;
  context.few_rows = on_device_ || weights_.packs_rows();
  context.on_device = on_device_;
  context.tables = tables_.get();
  context.zero = zero_.get();
  context.cache = frame.cache;
  return context;
}

std::unique_ptr<TokenForward> LsLm::Forward(const TokenFrame& frame, std::vector<TokenRun> runs,
                                            int64_t logit_rows) const {
  return std::make_unique<LsPass>(ContextOf(frame), std::move(runs), logit_rows);
}

absl::StatusOr<GeneratorFamily> MakeTransformerLs(const ModelDirectory& directory) {
  ASSIGN_OR_RETURN(const LsLmConfig config,
                   ParseLsLmConfig(directory.config, directory.common, directory.config_path));
  const auto tokenizer = directory.config.find("tokenizer");
  const bool described = tokenizer != directory.config.end() && !tokenizer->is_null();
  ASSIGN_OR_RETURN(auto codec, ByteCodec::Create(described ? &*tokenizer : nullptr, directory.path,
                                                 config.vocab, directory.config_path));
  GeneratorFamily family(directory);
  family.max_tokens = directory.serving.max_tokens.value_or(kMaxTokens);
  family.model =
      std::make_unique<LsLm>(config, directory.checkpoint, directory.path, family.max_tokens);
  family.text = {std::move(codec), nullptr};
  return family;
}

}  // namespace longview::models
