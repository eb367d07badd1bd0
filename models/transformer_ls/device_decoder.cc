#include "models/transformer_ls/device_decoder.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/device/device_admission.h"
#include "models/layers/span_rows.h"
#include "models/transformer_ls/cache_layout.h"
#include "models/transformer_ls/cost.h"

namespace longview::models {
namespace {

PassStep::Rules RulesOf(const LsLmConfig& config) {
  PassStep::Rules rules = DeviceRules("transformer_ls", config.vocab);
  if (config.schedule == LsSchedule::kBlocks) rules.boundary = config.block;
  return rules;
}

kernels::CacheShape ShapeOf(const LsLmConfig& config, Compute compute) {
  kernels::CacheShape shape = LsCacheShape(config, SpanType(compute));
  shape.form = kernels::BlockForm::kRows;
  return shape;
}

// What the model asks a device for, by name.
std::array<DeviceClaim, 3> Parts(const LsLmConfig& config, Compute compute, int max_tokens,
                                 const CacheRoom& room) {
  const kernels::CacheShape shape = ShapeOf(config, compute);
  const int64_t cache =
      kernels::ProjectionCache::MemoryBytes(shape, DeviceCacheOptions(nullptr), room.capacity());
  return {
      DeviceClaim{"weights", static_cast<double>(DeviceWeightBytes(config, compute, max_tokens))},
      DeviceClaim{"workspace", DeviceLsWorkspace::DeviceBytes(config, compute, shape, max_tokens)},
      DeviceClaim{absl::StrCat("a cache of ", room.capacity(), " bytes (cache_bytes)"),
                  static_cast<double>(cache)}};
}

// The device's memory is taken already: what is left are rows of logits, on the host.
class DeviceLsCosts final : public LsWork {
 public:
  DeviceLsCosts(const LsLmConfig& config, const kernels::CacheShape& shape)
      : LsWork(config, shape), row_bytes_(4.0 * config.vocab) {}

  double WorkspaceBytes(int64_t prefill_tokens, int sequences) const override {
    return row_bytes_ * (sequences + (prefill_tokens > 0 ? 1 : 0));
  }

 private:
  const double row_bytes_;
};

}  // namespace

double DeviceLsDecoder::DeviceBytes(const LsLmConfig& config, Compute compute, int max_tokens,
                                    const CacheRoom& room) {
  double bytes = 0;
  for (const DeviceClaim& part : Parts(config, compute, max_tokens, room)) bytes += part.bytes;
  return bytes;
}

DeviceLsDecoder::DeviceLsDecoder(const LsLmConfig& config, Compute compute, int max_tokens,
                                 std::unique_ptr<Device> device)
    : CachedDecoder(RulesOf(config), max_tokens),
      config_(config),
      device_(std::move(device)),
      blocks_(device_->api(), device_->index(), device_->stream()) {
  context_.config = &config_;
  context_.weights = &weights_;
  context_.compute = compute;
  context_.device = device_.get();
}

// The cache's blocks go back through the device.
DeviceLsDecoder::~DeviceLsDecoder() { CloseCache(); }

absl::StatusOr<std::unique_ptr<DeviceLsDecoder>> DeviceLsDecoder::Create(
    const LsLmConfig& config, const Checkpoint& checkpoint, const std::string& origin,
    Compute compute, int max_tokens, const CacheRoom& room, std::unique_ptr<Device> device) {
  const std::string name = device->name();
  std::unique_ptr<DeviceLsDecoder> decoder;
  absl::Status loaded;
  const absl::Status guarded = GuardDevice(absl::StrCat(origin, " on ", name), [&] {
    loaded =
        FitsDevice(origin, name, Parts(config, compute, max_tokens, room), device->FreeBytes());
    if (!loaded.ok()) return;
    decoder.reset(new DeviceLsDecoder(config, compute, max_tokens, std::move(device)));
    loaded = decoder->Load(checkpoint, origin, room);
  });
  if (!guarded.ok()) return guarded;
  if (!loaded.ok()) return loaded;
  return decoder;
}

absl::Status DeviceLsDecoder::Load(const Checkpoint& checkpoint, const std::string& origin,
                                   const CacheRoom& room) {
  const Device::Turn turn(*device_);
  absl::StatusOr<DeviceLsWeights> weights =
      LoadDeviceLsWeights(config_, checkpoint, origin, context_.compute, max_tokens(), *device_);
  if (!weights.ok()) return weights.status();
  weights_ = *std::move(weights);
  const kernels::CacheShape shape = ShapeOf(config_, context_.compute);
  workspace_ = std::make_unique<DeviceLsWorkspace>(context_, shape, max_tokens());
  absl::Status reserved = Reserve(shape, room, origin, DeviceCacheOptions(&blocks_));
  if (!reserved.ok()) return reserved;
  context_.cache = &projection_cache();
  memory_bytes_ = static_cast<double>(weights_.block->bytes()) +
                  DeviceLsWorkspace::DeviceBytes(config_, context_.compute, shape, max_tokens());
  set_costs(std::make_unique<DeviceLsCosts>(config_, shape));
  return absl::OkStatus();
}

std::unique_ptr<TokenPass> DeviceLsDecoder::MakePass(std::vector<TokenRun> runs, ScratchKeeper&,
                                                     EncoderTimes* times) {
  return std::make_unique<DeviceLsPass>(context_, blocks_, *workspace_, std::move(runs), times);
}

}  // namespace longview::models
