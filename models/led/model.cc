// LED as a family: encoder-decoder models of text, "text2text-generation".
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "models/decoder_stack/pass.h"
#include "models/encoder/model.h"
#include "models/generation/model/family.h"
#include "models/generation/passes/source_model.h"
#include "models/generation/passes/weighed_model.h"
#include "models/led/document_pass.h"
#include "models/led/rules.h"
#include "models/led/weights.h"
#include "models/longformer/pass.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

constexpr int kDefaultTopK = 50;  // HuggingFace's, which no other family here takes over.
// On the host a document's tokens are granted in multiples of so many: a fraction of a second's
// work.
constexpr int kPrefillAlignment = 16;

class LedSource final : public SourceModel {
 public:
  // Borrows config and weights.
  LedSource(const LedConfig& config, const LedWeights& weights, int max_tokens)
      : config_(config), weights_(weights), rules_(config), max_tokens_(max_tokens) {}

  const SequenceRules& rules() const override { return rules_; }
  int max_tokens() const override { return max_tokens_; }
  int width() const override { return config_.decoder.width; }
  int prefill_alignment() const override { return kPrefillAlignment; }
  kernels::CacheShape Shape(kernels::DType blocks) const override {
    return DocumentCacheShape(config_.decoder, blocks);
  }
  int Slots(const EncoderSequence& document) const override { return VisibleTokens(document); }
  double AttendWork(int64_t tokens) const override {
    return 2.0 * config_.decoder.width * config_.decoder.layers() * static_cast<double>(tokens);
  }
  std::unique_ptr<EncoderPass> Forward(const TokenFrame& frame, Sequences document,
                                       const kernels::CacheSequence* kept,
                                       bool brings_states) const override {
    return std::make_unique<LedDocumentPass>(config_, weights_, frame, document, kept,
                                             brings_states);
  }
  DeviceRunBytes MostBytes(absl::FunctionRef<DeviceRunBytes(Sequences)> most_bytes) const override {
    DeviceRunBytes most = LongestLongformerBytes(config_.encoder, max_tokens_, most_bytes);
    const auto keys = static_cast<size_t>(max_tokens_);
    most.lists += kernels::AlignUp(keys * sizeof(int32_t)) +
                  kernels::AlignUp(keys * sizeof(kernels::cuda::CacheRowPlace));
    return most;
  }
  SourceNeed HostNeed(const ComputeContext& host, const EncoderSequence& document,
                      const ForwardNeed&) const override {
    return LedReader::NeedOf(config_, weights_, host, document);
  }
  std::unique_ptr<SourceReader> Read(const SourceReading& what) const override {
    return std::make_unique<LedReader>(config_, weights_, what);
  }

 private:
  const LedConfig& config_;
  const LedWeights& weights_;
  const LedRules rules_;
  const int max_tokens_;
};

class Led final : public WeighedTokenModel<LedConfig, LedWeights> {
 public:
  // `max_tokens` of a document.
  Led(LedConfig config, const ModelDirectory& directory, int max_tokens)
      : WeighedTokenModel(std::move(config), LoadLedWeights, directory),
        source_(config_, weights_, max_tokens) {}

  const char* family() const override { return config_.decoder.family; }
  int vocab() const override { return config_.decoder.vocab; }
  kernels::CacheShape Shape(kernels::DType blocks) const override {
    return StackCacheShape(config_.decoder, blocks);
  }
  const SourceModel* source() const override { return &source_; }
  std::unique_ptr<TokenForward> Forward(const TokenFrame& frame, std::vector<TokenRun> runs,
                                        int64_t logit_rows) const override {
    const StackContext context = {&config_.decoder, &weights_.decoder, frame, source_.max_tokens()};
    return std::make_unique<StackPass>(context, std::move(runs), logit_rows);
  }

 private:
  const LedSource source_;
};

absl::StatusOr<LedConfig> ReadConfig(const ModelDirectory& directory) {
  absl::StatusOr<LedConfig> config = ParseLedConfig(directory);
  if (!config.ok()) return config;
  RETURN_IF_ERROR(CheckTokenIds(directory, config->decoder.vocab));
  return config;
}

}  // namespace

absl::StatusOr<GeneratorFamily> MakeLed(const ModelDirectory& directory) {
  ASSIGN_OR_RETURN(LedConfig config, ReadConfig(directory));
  GeneratorFamily family(directory);
  GeneratorTraits& traits = family.traits;
  traits.bos.reset();
  traits.decoder_start = {config.decoder_start};
  traits.eos = config.eos;
  traits.pad = config.pad;
  traits.default_top_k = kDefaultTopK;
  // The last token generated is never read.
  family.max_tokens = config.max_output + 1;
  family.obstacle = OddWidth("width ", config.decoder.width);
  const int document = MostTokens(directory, LedFacts(config).max_tokens);
  family.model = std::make_unique<Led>(std::move(config), directory, document);
  return family;
}

}  // namespace longview::models
