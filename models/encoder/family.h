// A family's contribution to the shared part of an encoder: facts, weights, a forward, heads.
//
// The shared part is everything else between model.h and the layers: tokenising, limits, masks,
// which rows are wanted, where the model runs, costs and their calibration, dropped items, answers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/base/parallel.h"
#include "models/dense/weight_format.h"
#include "models/directory/model_directory.h"
#include "models/encoder/item.h"
#include "models/encoder/pass.h"
#include "models/encoder/rules.h"
#include "models/ops/weight_placer.h"
#include "models/text/tokenizer.h"

namespace longview::models {

// An item whose sequences went through the encoder.
struct HeadInput {
  const EncoderItem* item = nullptr;
  int first_sequence = 0;          // The item's first, as the batch counts them.
  std::vector<const float*> rows;  // Per sequence: its wanted rows, [wanted, H].
};

struct HeadOutput {
  // [labels], [choices], [T, labels], [T, 2] (start, end) or [T or masks, V]; empty if nothing
  // of the item reads them.
  std::vector<float> logits;
  std::vector<float> embedding;   // [d], normalised if asked for.
  std::vector<float> token_rows;  // [T, d] of multi-vector answers.
};

// Constant and thread-safe once loaded.
class EncoderFamily : public SequenceRules {
 public:
  using Sequences = EncoderPass::Sequences;
  using BytesOfSequences = absl::FunctionRef<DeviceRunBytes(Sequences)>;

  const EncoderFacts& facts() const override { return facts_; }

  // Reads the weights: for the host, or the layers' into a device's memory (`store`), where
  // `format` is the heads' type. Without `format` names and shapes are checked, and the weights
  // have sizes alone. Errors name the tensor. May throw DeviceError and what LibTorch throws.
  virtual absl::Status Load(std::optional<WeightFormat> format, DeviceStore* store) = 0;

  // ---- After Load ----
  virtual double parameters() const = 0;
  virtual double memory_bytes() const = 0;
  // On the checkpoint: for logs and --check, a line each.
  virtual std::vector<std::string> notes() const { return {}; }

  // The forward of these sequences, whose rows are facts().width wide. Borrows all.
  virtual std::unique_ptr<EncoderPass> MakePass(Compute compute, Sequences sequences,
                                                int tile_rows) const = 0;
  // Rows of a sequence that heads read beside the wanted ones: a class vector, a summary.
  virtual int64_t ExtraRows(const EncoderSequence&) const { return 0; }
  // The heads of all items, together and on the host. A result's bits do not depend on the other
  // items. Throws what LibTorch throws.
  virtual std::vector<HeadOutput> ComputeHeads(const kernels::ParallelFor& pool,
                                               std::span<const HeadInput> inputs,
                                               ExtraOf extra) const = 0;
  // The most that a document of up to `tokens` tokens needs on a device, by what `bytes` says of a
  // batch.
  virtual DeviceRunBytes LongestBytes(int tokens, BytesOfSequences bytes) const {
    return LongestDocumentBytes(tokens, bytes);
  }

 protected:
  explicit EncoderFamily(EncoderFacts facts) : facts_(std::move(facts)) {}

  EncoderFacts facts_;
};

// The configuration that a family reads of a directory, checked, and weights still to be loaded.
// The directory outlives what is returned.
using MakeEncoder = absl::StatusOr<std::unique_ptr<EncoderFamily>> (*)(const ModelDirectory&);

// One with a configuration and weights of its own, which have `parameters` and `memory_bytes`.
template <class Config, class Weights>
class WeighedFamily : public EncoderFamily {
 public:
  using Loader = absl::StatusOr<Weights> (*)(const Config& config, const Checkpoint& checkpoint,
                                             const std::string& origin,
                                             std::optional<WeightFormat> format,
                                             DeviceStore* store);

  WeighedFamily(EncoderFacts facts, const Config& config, Loader load,
                const ModelDirectory& directory)
      : EncoderFamily(std::move(facts)), config_(config), load_(load), directory_(directory) {}

  absl::Status Load(std::optional<WeightFormat> format, DeviceStore* store) override {
    auto weights = load_(config_, directory_.checkpoint, directory_.path, format, store);
    if (weights.ok()) weights_ = *std::move(weights);
    return weights.status();
  }
  double parameters() const override { return weights_.parameters; }
  double memory_bytes() const override { return weights_.memory_bytes; }

 protected:
  const Config config_;
  Weights weights_;

 private:
  const Loader load_;
  const ModelDirectory& directory_;
};

// A MakeEncoder of a class that is made of its configuration and the directory.
template <class Family, class Config>
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeFamily(const absl::StatusOr<Config>& config,
                                                          const ModelDirectory& directory) {
  if (!config.ok()) return config.status();
  return std::make_unique<Family>(*config, directory);
}

// The text encoders of the registry, by family; see MakeEncoder.
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeBert(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeCst(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeLongformer(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeLsText(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeLuna(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeModernBert(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeRoberta(const ModelDirectory& directory);

// See ReadTokenizer: of Luna's dictionaries.
absl::StatusOr<std::optional<Tokenizer>> ReadLunaTokenizer(const ModelDirectory& directory);

}  // namespace longview::models
