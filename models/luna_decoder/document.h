// A document of a translation model: read by document_pass.h, on the host layer by layer as steps
// grant its tokens, on a device in one step; then the memory that decoder layers read.
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

#include "models/device/device_run.h"
#include "models/dense/scratch_keeper.h"
#include "models/encoder/pass_batch.h"
#include "models/encoder/sequence.h"
#include "models/generation/cache_room.h"
#include "models/generation/document_sequence.h"
#include "models/luna_decoder/context.h"
#include "models/luna_decoder/memory.h"

namespace longview::models {

class LunaDocumentPass;

class LunaDocument final : public ReadDocument, private DeviceItems {
 public:
  // Borrows what the context points to.
  LunaDocument(const LunaDecoderContext& context, const EncoderSequence& document,
               EncoderTimes* times);
  LunaDocument(const LunaDocument&) = delete;
  LunaDocument& operator=(const LunaDocument&) = delete;

  struct Need {
    double bytes = 0;            // From the budget: kept keys and values, and what reading holds.
    double workspace_bytes = 0;  // Scratch of one step that reads it, beside these.
    EncoderWork work;
  };
  // Exact; by counting the whole document's forward.
  static Need NeedOf(const LunaDecoderContext& context, const EncoderSequence& document);
  // The most that one of up to `tokens` tokens needs of a device, which has no memory yet.
  static DeviceRunBytes MostBytes(const LunaDecoderContext& context, int tokens);

  int unencoded() const override { return document_.tokens() - read_; }
  std::vector<std::byte> TakeStates() override { return std::move(states_); }
  absl::Status Begin(int tokens) override;
  absl::Status Advance(bool* more) override;
  void Drop() override;

  // Active rows of P; what decoder layers read, once it is read.
  int rows() const { return rows_; }
  const LunaDocumentMemory& memory() const { return memory_; }

 private:
  absl::Status TakeMemory();
  absl::Status BeginOnHost();
  std::unique_ptr<LunaDocumentPass> MakePass() const;
  void EndReading();
  void KeepStates(const std::byte* rows);

  int size() const override { return 1; }
  std::string NameOf(int item) const override;
  std::unique_ptr<DevicePart> Plan(std::span<const int> items) const override;
  void Keep(std::span<const int>, const std::byte* results) override { KeepStates(results); }

  const LunaDecoderContext& context_;
  const EncoderSequence document_;  // Every row is wanted.
  const bool wants_states_;
  const int rows_;
  EncoderTimes* const times_;
  kernels::CacheSequence cache_;
  LunaDocumentMemory memory_;
  HeldBytes held_;  // By the reading and the states, beside the cache's.
  int read_ = 0;
  int layers_done_ = 0;
  ScratchKeeper keeper_{0};
  std::unique_ptr<HostPass> pass_;  // While it is read on the host,
  std::optional<DeviceRun> run_;    // or on a device.
  std::vector<std::byte> states_;   // [tokens, d] fp32, if wanted.
};

}  // namespace longview::models
