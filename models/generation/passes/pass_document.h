// A document of a token model with an encoder: on its way through the encoder, on the host in
// pieces with other work between them, on a device in one step; then what the layers of the decoder
// attend to. Forks of a sequence share it.
// Belongs to the executor's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "models/cost/work.h"
#include "models/device/device_run.h"
#include "models/encoder/sequence.h"
#include "models/generation/decoder/cache_room.h"
#include "models/generation/passes/decoder_placement.h"
#include "models/generation/passes/source_model.h"

namespace longview::models {

// The parts that all documents of one decoder share. Borrowed.
struct SourceContext {
  const SourceModel* model = nullptr;
  const TokenFrame* frame = nullptr;
  const ComputeContext* host = nullptr;
  DecoderPlacement* placement = nullptr;  // On a device; null: on the host.
  ScratchPool* scratch = nullptr;
  kernels::CacheBudget* budget = nullptr;
};

class PassDocument final : private DeviceItems {
 public:
  // `times` may be null.
  PassDocument(const SourceContext& context, const EncoderSequence& document, RunTimes* times);
  PassDocument(const PassDocument&) = delete;
  PassDocument& operator=(const PassDocument&) = delete;

  struct Need {
    double bytes = 0;            // From the budget: kept keys and values, and what reading holds.
    double workspace_bytes = 0;  // Scratch of one step that reads it, beside these.
    EncoderWork work;
  };
  // Exact; by counting the whole document's forward.
  static Need NeedOf(const SourceContext& context, const EncoderSequence& document);
  // The most that any document needs of a device, which has no memory yet.
  static DeviceRunBytes MostBytes(const SourceContext& context);

  // Tokens that no step was granted yet.
  int unencoded() const { return document_.tokens() - read_; }
  // The last hidden states [tokens, width], fp32, once it is read, if rows of it are wanted. Once.
  std::vector<std::byte> TakeStates() { return std::move(states_); }

  // A step reads so many tokens more. RESOURCE_EXHAUSTED where memory was not reserved.
  absl::Status Begin(int tokens);
  // The next piece of that; returns whether work is left. Throws what LibTorch and the allocator
  // throw, and DeviceError.
  bool Advance();
  // Nobody waits for it: gives back at once what its reading holds. It is neither read on nor
  // attended to.
  void Drop();

  const EncoderSequence& document() const { return document_; }
  // Part of the cache of documents; what is there counts once the document is read.
  const kernels::CacheSequence& kept() const { return kept_; }

 private:
  int64_t StateBytes() const;
  absl::Status TakeMemory();

  int size() const override { return 1; }
  std::string NameOf(int item) const override;
  std::unique_ptr<DevicePart> Plan(std::span<const int> items) const override;
  void Keep(std::span<const int> items, const std::byte* results) override;

  const SourceContext context_;
  const EncoderSequence document_;  // Every row is wanted.
  const bool wants_states_;
  RunTimes* const times_;
  kernels::CacheSequence kept_;
  HeldBytes held_;                 // By the reading and the states, beside the cache's.
  std::vector<std::byte> states_;  // [tokens, width] fp32, if wanted.
  int read_ = 0;
  std::unique_ptr<SourceReader> reader_;  // Set while the host reads the document.
  std::optional<DeviceRun> run_;          // Set while a device reads it.
};

}  // namespace longview::models
