#include "models/transformer/family.h"

#include <numeric>
#include <utility>
#include <vector>

#include "models/encoder/pad_positions.h"
#include "models/status_macros.h"
#include "models/transformer/heads.h"
#include "models/transformer/pass.h"

namespace longview::models {
namespace {

EncoderFacts FactsOf(const std::string& family, const TransformerConfig& config) {
  EncoderFacts facts = FactsOfText(family, config);
  facts.head = config.head;
  facts.types = config.types;
  facts.max_tokens = config.max_tokens;
  facts.pairs = PairForm::kJoined;
  if (config.sep >= 0) facts.sep = config.sep;
  facts.pad = config.pad;
  facts.has_pooler = config.has_pooler;
  if (config.pools_mean) facts.head_reads = RowsRead::kAll;
  return facts;
}

class Transformer final : public WeighedFamily<TransformerConfig, TransformerWeights> {
 public:
  Transformer(const std::string& name, const TransformerConfig& config, TransformerLoader load,
              const ModelDirectory& directory)
      : WeighedFamily(FactsOf(name, config), config, load, directory) {}

  std::vector<std::string> notes() const override { return weights_.notes; }

  std::unique_ptr<EncoderPass> MakePass(Compute compute, Sequences sequences,
                                        int tile_rows) const override {
    return std::make_unique<TransformerPass>(config_, weights_, compute, sequences, tile_rows);
  }
  std::vector<HeadOutput> ComputeHeads(const kernels::ParallelFor& pool,
                                       std::span<const HeadInput> inputs, ExtraOf) const override {
    TaskHeads heads = HeadsOf(config_, weights_);
    heads.activation = config_.head_activation;
    heads.pools_mean = config_.pools_mean;
    heads.norm = weights_.head_norm ? &*weights_.head_norm : nullptr;
    return ComputeTaskHeads(heads, pool, inputs);
  }

  absl::Status Place(const std::string& field, EncoderSequence& sequence) const override {
    if (config_.behind_pad) {
      return PlaceBehindPad(config_.pad, config_.positions, field, sequence);
    }
    sequence.positions.resize(sequence.ids.size());
    std::iota(sequence.positions.begin(), sequence.positions.end(), 0);
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeTransformer(
    const std::string& name, const absl::StatusOr<TransformerConfig>& config,
    TransformerLoader load, const ModelDirectory& directory) {
  if (!config.ok()) return config.status();
  RETURN_IF_ERROR(CheckTokenIds(directory, config->vocab));
  return std::make_unique<Transformer>(name, *config, load, directory);
}

}  // namespace longview::models
