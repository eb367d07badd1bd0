#include "models/encoder/placed_encoder.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/span/launch_shape.h"
#include "models/device/device_admission.h"
#include "models/encoder/grouped_batch.h"
#include "models/encoder/host_pass.h"
#include "models/encoder/model.h"
#include "models/forward/forward_part.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

// Documents of the longest kind that a workspace holds at once, where there is memory: more work on
// the device at a time than that gains nothing.
constexpr int kMostDocuments = 8;

// Moves `count` floats from *next on.
std::vector<float> TakeRows(int64_t count, const float** next) {
  std::vector<float> rows(*next, *next + count);
  *next += count;
  return rows;
}

class DeviceBatch final : public EncoderBatch, private DeviceItems {
 public:
  DeviceBatch(const EncoderFamily& family, const DevicePlacement& placement,
              DeviceWorkspace& workspace, PlacedEncoder::Sequences sequences, RunTimes* times)
      : family_(family),
        placement_(placement),
        sequences_(sequences.begin(), sequences.end()),
        width_(family.facts().width),
        rows_(sequences.size()),
        run_(*placement.device, workspace, *this, times) {}

  bool Advance() override { return run_.Advance(); }
  void Drop(int i) override { run_.Drop(i); }
  const float* Rows(int i) const override { return rows_[i].wanted.data(); }
  ExtraRowsView Extra(int i) const override {
    const std::vector<float>& extra = rows_[i].extra;
    return {extra.data(), static_cast<int64_t>(extra.size()) / width_};
  }

 private:
  // Results of a sequence; empty where dropped.
  struct SequenceRows {
    std::vector<float> wanted;  // [wanted, H]
    std::vector<float> extra;   // [EncoderFamily::ExtraRows, H]
  };

  int size() const override { return static_cast<int>(sequences_.size()); }
  std::string NameOf(int item) const override {
    return absl::StrCat("a document of ", sequences_[item]->tokens(), " tokens");
  }
  std::unique_ptr<DevicePart> Plan(std::span<const int> items) const override {
    std::vector<const EncoderSequence*> sequences;
    for (const int item : items) sequences.push_back(sequences_[item]);
    return std::make_unique<ForwardPart>(
        family_.MakePass(placement_.compute, sequences, kernels::cuda::kDeviceTileRows),
        *placement_.device, placement_.compute);
  }
  void Keep(std::span<const int> items, const std::byte* results) override {
    const auto* next = reinterpret_cast<const float*>(results);
    for (const int item : items) {
      const auto wanted = static_cast<int64_t>(sequences_[item]->wanted.size());
      rows_[item].wanted = TakeRows(wanted * width_, &next);
    }
    for (const int item : items) {
      rows_[item].extra = TakeRows(family_.ExtraRows(*sequences_[item]) * width_, &next);
    }
  }

  const EncoderFamily& family_;
  const DevicePlacement& placement_;
  const std::vector<const EncoderSequence*> sequences_;
  const int64_t width_;
  std::vector<SequenceRows> rows_;  // By sequence.
  DeviceRun run_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PlacedEncoder>> PlacedEncoder::OnHost(
    std::unique_ptr<EncoderFamily> family, WeightFormat format) {
  RETURN_IF_ERROR(family->Load(format, nullptr));
  return std::unique_ptr<PlacedEncoder>(new PlacedEncoder(std::move(family), format.compute));
}

absl::StatusOr<std::unique_ptr<PlacedEncoder>> PlacedEncoder::OnDevice(
    std::unique_ptr<EncoderFamily> family, const ModelDirectory& directory, Compute compute,
    std::unique_ptr<Device> device) {
  DeviceStore store(compute);
  RETURN_IF_ERROR(family->Load(std::nullopt, &store));
  const int tokens = MostTokens(directory, family->facts().max_tokens);
  const DeviceRunBytes longest = family->LongestBytes(tokens, [&](Sequences sequences) {
    auto pass = family->MakePass(compute, sequences, kernels::cuda::kDeviceTileRows);
    return ForwardPart(std::move(pass), *device, compute).most_bytes();
  });
  const size_t bytes = store.bytes();
  const DeviceNeed need = {static_cast<double>(bytes), static_cast<double>(longest.device()),
                           tokens};
  ASSIGN_OR_RETURN(const int documents, DocumentsAtOnce(directory.path, device->name(), need,
                                                        device->FreeBytes(), kMostDocuments));
  store.Allocate(*device);
  RETURN_IF_ERROR(family->Load(Compute::kFp32, &store));
  auto placed =
      std::unique_ptr<PlacedEncoder>(new PlacedEncoder(std::move(family), Compute::kFp32));
  placed->store_ = store.TakeBlock();
  placed->placement_ = {std::move(device), compute, bytes,
                        longest.Times(static_cast<size_t>(documents))};
  placed->workspace_ =
      std::make_unique<DeviceWorkspace>(*placed->placement_.device, placed->placement_.room);
  return placed;
}

double PlacedEncoder::memory_bytes() const {
  if (!workspace_) return family_->memory_bytes();
  return static_cast<double>(placement_.weight_bytes + placement_.room.device());
}

std::unique_ptr<EncoderBatch> PlacedEncoder::Begin(Sequences sequences, ScratchPool& scratch,
                                                   RunTimes* times) const {
  if (!workspace_) {
    std::vector<SequenceGroup> groups = GroupSequences(sequences);
    if (groups.size() > 1) {
      return std::make_unique<GroupedBatch>(*family_, context_, sequences, std::move(groups),
                                            scratch, times);
    }
    auto pass = family_->MakePass(context_.compute, sequences, context_.tile_rows());
    return std::make_unique<HostPass>(std::move(pass), context_, scratch, times);
  }
  return std::make_unique<DeviceBatch>(*family_, placement_, *workspace_, sequences, times);
}

std::vector<HeadOutput> PlacedEncoder::ComputeHeads(const EncoderBatch& batch,
                                                    std::span<const HeadInput> inputs) const {
  return family_->ComputeHeads(pool_, inputs, [&](int i) { return batch.Extra(i); });
}

EncoderCost PlacedEncoder::CostOf(Sequences sequences) const {
  if (!workspace_) {
    return CostOfGroups(*family_, context_, sequences, GroupSequences(sequences));
  }
  const auto pass = family_->MakePass(context_.compute, sequences, context_.tile_rows());
  const ForwardCount count = CountOnHost(*pass, context_);
  int64_t rows = 0;
  for (const EncoderSequence* sequence : sequences) {
    rows += static_cast<int64_t>(sequence->wanted.size()) + family_->ExtraRows(*sequence);
  }
  return {count.work, static_cast<size_t>(rows * facts().width) * sizeof(float)};
}

}  // namespace longview::models
