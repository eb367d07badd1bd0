// A document that a device reads in one step.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/device/device_run.h"
#include "models/led/document.h"

namespace longview::models {

class WholeDocument final : public LedDocument, private DeviceItems {
 public:
  WholeDocument(const LedContext& context, EncoderSequence document, EncoderTimes* times);

  // The most that a document of up to `tokens` tokens needs.
  static DeviceRunBytes MostBytes(const LedContext& context, int tokens);

  // The work is done when all of it is granted; on a device that is at once
  // (Decoder::prefill_granule).
  absl::Status Begin(int tokens) override;
  absl::Status Advance(bool* more) override;
  void Drop() override { run_.reset(); }

 private:
  int size() const override { return 1; }
  std::string NameOf(int item) const override;
  std::unique_ptr<DevicePart> Plan(std::span<const int> items) const override;
  void Keep(std::span<const int> items, const std::byte* results) override;

  const EncoderSequence whole_;  // Wants all its rows.
  KeyRows key_rows_;
  EncoderTimes* const times_;
  std::optional<DeviceRun> run_;  // While it is read.
};

}  // namespace longview::models
