#include "models/vil/device_buffers.h"

#include <algorithm>

#include "models/device/device_panels.h"

namespace longview::models {
namespace {

class StageCarver {
 public:
  StageCarver(const VilConfig& config, Compute compute, const DeviceVilStage& stage)
      : config_(config), compute_(compute), planned_(stage), stage_(stage.stage()) {}

  // Where the stage's work begins; returns where the furthest of it ends.
  size_t Run(int64_t channels, int64_t pieces, std::byte* base, DeviceVilBuffers& b) const {
    Carver tokens(base), blocks(base), last(base);
    b.patches = Panels(planned_.tokens(), channels * stage_.patch * stage_.patch, tokens);
    b.made = Panels(planned_.tokens(), stage_.width, tokens);
    TakeBlock(b, blocks);
    if (&stage_ == &config_.stages.back()) TakeLast(pieces, b, last);
    return std::max({tokens.used(), blocks.used(), last.used()});
  }

 private:
  // Rows of T that linears touch; none if there are none.
  std::byte* Panels(int64_t rows, int64_t columns, Carver& carver) const {
    const int64_t padded = rows == 0 ? 0 : rows + kDevicePanelTail;
    return carver.TakeBytes(static_cast<size_t>(padded * columns * ElementBytes(compute_)));
  }

  void TakeBlock(DeviceVilBuffers& b, Carver& carver) const {
    const int64_t rows = planned_.plan().rows, d = stage_.width;
    const bool reduces = stage_.attention == VilAttention::kReduction;
    b.normed = Panels(rows, d, carver);
    const int64_t columns = planned_.is_long_short() ? int64_t{stage_.heads} * stage_.ranks : 0;
    b.qkv = Panels(rows, reduces ? d : 3 * d + columns, carver);
    b.wide = Panels(std::min(rows, kDeviceTailRows), stage_.hidden, carver);
    b.added = Panels(std::min(rows, kDeviceTailRows), d, carver);
    const int64_t keys = planned_.plan().keys;
    b.keys = Panels(keys, 2 * d, carver);
    if (reduces) {
      const int64_t places = planned_.reduced_places();
      b.reduced_taps = Panels(places, int64_t{stage_.features} * stage_.features * d, carver);
      b.reduced = Panels(places, d, carver);
      b.key_inputs = Panels(keys, d, carver);
    }
    if (planned_.separates_globals()) {
      b.global_inputs = Panels(planned_.globals(), d, carver);
      b.global_outs = Panels(planned_.globals(), d, carver);
      b.global_q = Panels(rows, d, carver);
      b.global_kv = Panels(rows, 2 * d, carver);
    }
    if (planned_.is_long_short()) TakeLongShort(columns, b, carver);
    b.bias = carver.Take<float>(stage_.heads * planned_.bias_entries());
    if (stage_.attention == VilAttention::kPerformer) {
      const int64_t heads = int64_t{planned_.images()} * stage_.heads;
      b.tops = carver.Take<float>(heads);
      b.sums = carver.Take<float>(heads * stage_.features * (stage_.head_dim() + 1));
    }
    b.partials = carver.TakeBytes(
        std::max(DevicePartialBytes(planned_.attention(), stage_.head_dim()),
                 DevicePartialBytes(planned_.global_attention(), stage_.head_dim())));
  }

  void TakeLongShort(int64_t columns, DeviceVilBuffers& b, Carver& carver) const {
    const int64_t rows = planned_.plan().rows, d = stage_.width;
    const int64_t images = planned_.images(), states = planned_.pieces() * columns;
    b.keys = Panels(rows, d, carver);
    b.values = Panels(rows, d, carver);
    b.landmarks = Panels(images * stage_.ranks, 2 * d, carver);
    b.landmark_scores = carver.Take<float>(rows * columns);
    b.landmark_means = carver.Take<float>(2 * images * columns * stage_.head_dim());
    b.landmark_sums = {carver.Take<float>(states), carver.Take<float>(states),
                       carver.Take<float>(states * stage_.head_dim())};
  }

  void TakeLast(int64_t pieces, DeviceVilBuffers& b, Carver& carver) const {
    const int64_t d = stage_.width;
    b.last = carver.Take<float>((pieces > 0 ? planned_.plan().rows : planned_.images()) * d);
    if (pieces == 0) return;
    b.scores = carver.Take<float>(planned_.plan().rows);
    b.pool = {carver.Take<float>(pieces), carver.Take<float>(pieces),
              carver.Take<float>(pieces * d)};
  }

  const VilConfig& config_;
  const Compute compute_;
  const DeviceVilStage& planned_;
  const VilStage& stage_;
};

}  // namespace

DeviceVilMemory CarveDeviceVil(const VilConfig& config, Compute compute,
                               std::span<const DeviceVilStage> stages, int64_t pieces,
                               int64_t results, Carver& carver) {
  DeviceVilMemory memory;
  int64_t streams[2] = {0, 0};
  size_t work = 0;
  const auto channels = [&](size_t s) {
    return s == 0 ? int64_t{config.channels} : int64_t{config.stages[s - 1].width};
  };
  for (size_t s = 0; s < stages.size(); ++s) {
    int64_t& stream = streams[s % 2];
    stream = std::max(stream, stages[s].plan().rows * config.stages[s].width);
    DeviceVilBuffers counted;
    work = std::max(
        work, StageCarver(config, compute, stages[s]).Run(channels(s), pieces, nullptr, counted));
  }
  memory.results = carver.Take<float>(results);
  float* const x[2] = {carver.Take<float>(streams[0]), carver.Take<float>(streams[1])};
  std::byte* const base = carver.TakeBytes(work);
  for (size_t s = 0; base != nullptr && s < stages.size(); ++s) {
    DeviceVilBuffers& buffers = memory.stages.emplace_back();
    buffers.x = x[s % 2];
    StageCarver(config, compute, stages[s]).Run(channels(s), pieces, base, buffers);
  }
  return memory;
}

}  // namespace longview::models
