// The frame of a text encoder whose forward is a pass: one class on the host and on devices. A
// family derives from PassFamily<Family, Config, Weights>, where Family brings
//
//   Read(directory)                     the checked configuration
//   LoadWeights(config, directory, compute, store)
//   FactsOf(config)                     EncoderFacts
//   MakePass(config, weights, compute, sequences, tile_rows)
//   ComputeHeads(context, inputs, extra)
//   ExtraRowsOf(config, sequence)       rows that heads read beside the wanted ones
//
// all static, and adds how tokens are placed and how large logits are. Weights have `parameters`
// and `memory_bytes`, and may have `notes` on tensors that were left aside. Heads run on the host:
// in the model's type, or in fp32 where layers are on a device.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda/span/launch_shape.h"
#include "models/device/device_seat.h"
#include "models/encoder/device_encoder.h"
#include "models/encoder/device_model.h"
#include "models/encoder/family.h"
#include "models/encoder/longest_document.h"
#include "models/encoder/model.h"
#include "models/encoder/pass_batch.h"
#include "models/ops/weight_placer.h"
#include "models/parallel.h"

namespace longview::models {

template <class Family, class ConfigT, class WeightsT>
class PassFamily : public EncoderFamily, private DeviceEncoderLayers {
 public:
  using Config = ConfigT;
  using Weights = WeightsT;
  using Context = ModelContext<Config, Weights>;
  using Sequences = EncoderFamily::Sequences;

  // On the host.
  PassFamily(Config config, Weights weights, Compute compute)
      : config_(std::move(config)),
        weights_(std::move(weights)),
        facts_(Family::FactsOf(config_)),
        context_(config_, weights_, compute, pool_) {}
  // On a device, whose `store` holds the layers' weights. Throws DeviceError.
  PassFamily(Config config, Weights weights, DeviceSeat seat, std::unique_ptr<DeviceBlock> store)
      : PassFamily(std::move(config), std::move(weights), Compute::kFp32) {
    seat_ = std::move(seat);
    store_ = std::move(store);
    workspace_ = std::make_unique<DeviceWorkspace>(*seat_.device, seat_.room);
  }

  static std::vector<std::string> NotesOf(const Weights& weights) {
    if constexpr (requires { weights.notes; }) return weights.notes;
    return {};
  }

  static absl::StatusOr<Weights> Load(const Config& config, const ModelDirectory& directory,
                                      std::optional<Compute> compute) {
    return Family::LoadWeights(config, directory, compute, nullptr);
  }

  // The most that a document of up to `tokens` tokens needs on a device, by what `bytes` says of a
  // batch.
  using BytesOfSequences = absl::FunctionRef<DeviceRunBytes(EncoderPass::Sequences)>;
  static DeviceRunBytes LongestBytes(const Config&, int tokens, BytesOfSequences bytes) {
    return LongestDocumentBytes(tokens, bytes);
  }

  const EncoderFacts& facts() const override { return facts_; }
  Compute compute() const override { return on_device() ? seat_.compute : context_.compute; }
  double parameters() const override { return weights_.parameters; }
  std::vector<std::string> notes() const override { return NotesOf(weights_); }
  double memory_bytes() const override {
    if (!on_device()) return weights_.memory_bytes;
    return static_cast<double>(seat_.weight_bytes + seat_.room.device());
  }

  std::unique_ptr<EncoderBatch> Begin(Sequences sequences, ScratchKeeper& scratch,
                                      EncoderTimes* times) const override {
    if (!on_device()) return std::make_unique<HostBatch>(context_, sequences, scratch, times);
    const DeviceEncoderLayers& layers = *this;
    return std::make_unique<DeviceEncoderBatch>(*seat_.device, *workspace_, layers, sequences,
                                                config_.width, times);
  }

  // On a device: of the rows that come back; its memory was taken when the model loaded.
  size_t WorkspaceBytes(Sequences sequences) const override {
    if (!on_device()) {
      const OpsNeed need = Counted(sequences).need();
      return need.memory() + need.transient;
    }
    int64_t rows = 0;
    for (const EncoderSequence* sequence : sequences) {
      rows += static_cast<int64_t>(sequence->wanted.size()) + ExtraRows(*sequence);
    }
    return static_cast<size_t>(rows * config_.width) * sizeof(float);
  }
  EncoderWork WorkOf(const EncoderSequence& sequence) const override {
    const std::array<const EncoderSequence*, 1> one = {&sequence};
    return Counted(one).work();
  }

 protected:
  const Config config_;
  const Weights weights_;
  EncoderFacts facts_;

 private:
  class HostBatch final : public EncoderBatch {
   public:
    HostBatch(const Context& context, Sequences sequences, ScratchKeeper& scratch,
              EncoderTimes* times)
        : context_(context),
          pass_(Family::MakePass(*context.config, *context.weights, context.compute, sequences,
                                 context.tile_rows()),
                context, scratch, times) {}

    bool Advance() override { return pass_.Advance(); }
    void Drop(int i) override { pass_.Drop(i); }
    const float* Rows(int i) const override { return pass_.Rows(i); }
    std::vector<HeadOutput> ComputeHeads(std::span<const HeadInput> inputs) const override {
      return Family::ComputeHeads(context_, inputs, [&](int i) { return pass_.Extra(i); });
    }

   private:
    const Context& context_;
    HostPass pass_;
  };

  bool on_device() const { return seat_.device != nullptr; }
  // The batch counted as the host runs it.
  HostCount Counted(Sequences sequences) const {
    HostCount count(context_);
    CountPass(*Family::MakePass(config_, weights_, context_.compute, sequences,
                                context_.tile_rows()),
              count);
    return count;
  }

  std::unique_ptr<DevicePart> Plan(DeviceEncoderLayers::Sequences sequences) const override {
    return std::make_unique<DevicePassPart>(
        Family::MakePass(config_, weights_, seat_.compute, sequences,
                         kernels::cuda::kDeviceTileRows),
        *seat_.device, seat_.compute);
  }
  int64_t ExtraRows(const EncoderSequence& sequence) const override {
    return Family::ExtraRowsOf(config_, sequence);
  }
  std::vector<HeadOutput> ComputeHeads(std::span<const HeadInput> inputs,
                                       std::span<const SequenceRows> rows) const override {
    return Family::ComputeHeads(context_, inputs, [&](int sequence) {
      const std::vector<float>& extra = rows[sequence].extra;
      return ExtraRowsView{extra.data(), static_cast<int64_t>(extra.size()) / config_.width};
    });
  }

  const TorchParallelFor pool_;
  const Context context_;
  DeviceSeat seat_;  // Without a device on the host.
  std::unique_ptr<DeviceBlock> store_;
  // Used by the executor's thread, as batches are.
  std::unique_ptr<DeviceWorkspace> workspace_;
};

// A BuildEncoder of a class derived from PassFamily.
template <class Family>
absl::StatusOr<std::unique_ptr<EncoderFamily>> BuildFamily(const ModelDirectory& directory,
                                                           Compute compute) {
  auto config = Family::Read(directory);
  if (!config.ok()) return config.status();
  auto weights = Family::Load(*config, directory, compute);
  if (!weights.ok()) return weights.status();
  return std::make_unique<Family>(*std::move(config), *std::move(weights), compute);
}

// For registry.h's `describe`: checks configuration, names and shapes, reads no weights.
template <class Family>
absl::StatusOr<ModelInfo> DescribeFamily(const ModelDirectory& directory,
                                         bool own_tokenizer = false) {
  const auto config = Family::Read(directory);
  if (!config.ok()) return config.status();
  const auto weights = Family::Load(*config, directory, std::nullopt);
  if (!weights.ok()) return weights.status();
  absl::StatusOr<ModelInfo> info = DescribeEncoder(directory, Family::FactsOf(*config),
                                                   weights->parameters, own_tokenizer);
  if (!info.ok()) return info;
  const std::vector<std::string> notes = Family::NotesOf(*weights);
  info->notes.insert(info->notes.end(), notes.begin(), notes.end());
  return info;
}

// A BuildDeviceEncoder of a class derived from PassFamily. RESOURCE_EXHAUSTED as RoomForDocuments.
// Rows of 16-bit numbers are copied word by word: INVALID_ARGUMENT if the width is odd.
template <class Family>
absl::StatusOr<std::unique_ptr<EncoderFamily>> BuildPassOnDevice(const ModelDirectory& directory,
                                                                 Compute compute,
                                                                 std::unique_ptr<Device> device) {
  auto config = Family::Read(directory);
  if (!config.ok()) return config.status();
  if (config->width % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        directory.config_path, ": the width must be even to run on ", device->name()));
  }
  DeviceStore store(compute);
  auto sizes = Family::LoadWeights(*config, directory, std::nullopt, &store);
  if (!sizes.ok()) return sizes.status();
  const int tokens = MostTokens(directory, Family::FactsOf(*config).max_tokens);
  const DeviceRunBytes longest =
      Family::LongestBytes(*config, tokens, [&](EncoderPass::Sequences sequences) {
        auto pass = Family::MakePass(*config, *sizes, compute, sequences,
                                     kernels::cuda::kDeviceTileRows);
        return DevicePassPart(std::move(pass), *device, compute).most_bytes();
      });
  const size_t bytes = store.bytes();
  const absl::StatusOr<DeviceRunBytes> room =
      RoomForDocuments(directory, *device, bytes, longest, tokens);
  if (!room.ok()) return room.status();
  store.Allocate(*device);
  auto weights = Family::LoadWeights(*config, directory, Compute::kFp32, &store);
  if (!weights.ok()) return weights.status();
  return std::make_unique<Family>(*std::move(config), *std::move(weights),
                                  DeviceSeat{std::move(device), compute, bytes, *room},
                                  store.TakeBlock());
}

}  // namespace longview::models
