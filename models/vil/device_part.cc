#include "models/vil/device_part.h"

#include <algorithm>
#include <limits>

#include "kernels/cuda/pool/pool_pieces.h"
#include "kernels/cuda/span/launch_shape.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

std::vector<ImageSize> SizesOf(std::span<const DevicePicture> pictures) {
  std::vector<ImageSize> sizes;
  for (const DevicePicture& picture : pictures) sizes.push_back(picture.size);
  return sizes;
}

std::vector<DeviceVilStage> PlanStages(const VilContext& context,
                                       std::span<const DevicePicture> pictures) {
  std::vector<std::vector<ImageSize>> maps(context.config->stages.size());
  for (const DevicePicture& picture : pictures) {
    const std::vector<ImageSize> of_picture = *VilMaps(*context.config, picture.size);
    for (size_t s = 0; s < maps.size(); ++s) maps[s].push_back(of_picture[s]);
  }
  std::vector<DeviceVilStage> stages;
  stages.reserve(maps.size());
  for (size_t s = 0; s < maps.size(); ++s) stages.emplace_back(context, s, maps[s]);
  return stages;
}

kernels::cuda::PoolPiecePlan CutMeans(const VilStagePlan& plan) {
  std::vector<kernels::cuda::PoolSegment> images;
  for (const MapTokens& image : plan.images)
    images.push_back({image.row0, image.row0 + image.rows});
  return kernels::cuda::CutPieces(images);
}

}  // namespace

void PlanForDevice(VilContext& context) {
  context.band_tokens = std::numeric_limits<int64_t>::max();
  context.device_tile_rows = kernels::cuda::kDeviceTileRows;
  context.cuts.never = true;
}

DeviceRunBytes DeviceVilBytes(const VilConfig& config, Compute compute, const Device& device,
                              ImageSize size) {
  const VilWeights none;
  const TorchParallelFor pool;
  ShapeCache shapes;
  VilContext plans(config, none, compute, pool, shapes);
  PlanForDevice(plans);
  const DeviceVilContext context = {&plans, &none, compute, &device};
  const DevicePicture picture = WholePicture(size, config.stages.size());
  return DeviceVilPart(context, {&picture, 1}).bytes();
}

DeviceVilPart::DeviceVilPart(const DeviceVilContext& context,
                             std::span<const DevicePicture> pictures)
    : context_(context),
      config_(*context.plans->config),
      pictures_(pictures.begin(), pictures.end()),
      stages_(PlanStages(*context.plans, pictures)),
      planes_(stages_.size()) {
  for (size_t s = 0; s < stages_.size(); ++s) {
    for (int b = 0; b < config_.stages[s].blocks; ++b) places_.push_back({s, b});
  }
  PlaceResults();
  bytes_ = Count();
}

// Features of all pictures, then their maps, picture by picture.
void DeviceVilPart::PlaceResults() {
  if (!config_.backbone) {
    results_ = static_cast<int64_t>(pictures_.size()) * config_.feature_width();
  }
  std::vector<int64_t> token0(stages_.size());
  for (size_t i = 0; i < pictures_.size(); ++i) {
    for (size_t s = 0; s < stages_.size(); ++s) {
      const int64_t tokens = stages_[s].plan().images[i].count();
      if (std::ranges::find(pictures_[i].stages, static_cast<int>(s)) !=
          pictures_[i].stages.end()) {
        planes_[s].images.push_back({token0[s], results_, tokens});
        planes_[s].most = std::max(planes_[s].most, tokens);
        results_ += tokens * config_.stages[s].width;
      }
      token0[s] += tokens;
    }
  }
}

DeviceRunBytes DeviceVilPart::Count() {
  StagedLists lists(nullptr, nullptr);
  Stage(lists);
  Carver carver(nullptr);
  Carve(carver);
  return {lists.used(), carver.used(), static_cast<size_t>(results_) * sizeof(float)};
}

void DeviceVilPart::Stage(StagedLists& lists) {
  std::vector<const PixelValues*> pixels;
  for (const DevicePicture& picture : pictures_) pixels.push_back(picture.pixels);
  const std::vector<ImageSize> sizes = SizesOf(pictures_);
  for (size_t s = 0; s < stages_.size(); ++s) {
    stages_[s].Stage(s == 0 ? nullptr : &stages_[s - 1], sizes, pixels, lists);
    planes_[s].staged = lists.Add(planes_[s].images);
  }
  if (config_.backbone) return;
  const VilStagePlan& last = stages_.back().plan();
  if (config_.reads_class_token()) {
    class_from_ = lists.Add(std::span(last.offsets).first(pictures_.size()));
    return;
  }
  const kernels::cuda::PoolPiecePlan means = CutMeans(last);
  pieces_ = static_cast<int32_t>(means.pieces.size());
  piece_list_ = lists.Add(means.pieces);
  piece0_ = lists.Add(means.piece0);
}

void DeviceVilPart::Carve(Carver& carver) {
  memory_ = CarveDeviceVil(config_, context_.compute, stages_, pieces_, results_, carver);
}

void DeviceVilPart::RunLayer(int layer, const DeviceTimer& timer) {
  const auto [stage, block] = places_[layer];
  const DeviceVilSteps steps(context_, stage, stages_[stage], memory_.stages[stage]);
  if (block == 0) {
    timer.Run(&EncoderTimes::linears,
              [&] { steps.MakeTokens(stage == 0 ? nullptr : memory_.stages[stage - 1].x); });
  }
  steps.RunBlock(block, timer);
  if (block + 1 < config_.stages[stage].blocks) return;
  timer.Run(&EncoderTimes::rest, [&] {
    KeepMaps(stage);
    if (stage + 1 == stages_.size() && !config_.backbone) MakeFeatures();
  });
}

void DeviceVilPart::KeepMaps(size_t stage) const {
  const Planes& planes = planes_[stage];
  const kernels::cuda::MapPlanes args = {memory_.stages[stage].x,
                                         stages_[stage].lists().rows,
                                         planes.staged,
                                         static_cast<int32_t>(planes.images.size()),
                                         planes.most,
                                         config_.stages[stage].width,
                                         memory_.results};
  if (args.count == 0) return;
  const Device& device = *context_.device;
  device.Check(device.api().maps.planes(device.stream(), args), "feature maps");
}

// After the last norm: the first global token, or the mean over all tokens.
void DeviceVilPart::MakeFeatures() const {
  const DeviceVilBuffers& buffers = memory_.stages.back();
  if (!config_.reads_class_token()) return MakeMeans(buffers);
  const Device& device = *context_.device;
  const auto images = static_cast<int64_t>(pictures_.size());
  const int64_t bytes = config_.feature_width() * int64_t{sizeof(float)};
  const kernels::cuda::CopyRows rows = {buffers.x, buffers.last, class_from_,
                                        nullptr,   images,       static_cast<int32_t>(bytes),
                                        bytes,     bytes};
  device.Check(device.api().rows.copy(device.stream(), rows), "class rows");
  DeviceRows(device, Compute::kFp32, config_.feature_width())
      .Prenorm(buffers.last, context_.weights->norm.device, images, memory_.results);
}

// Means with equal weights: scores of zero.
void DeviceVilPart::MakeMeans(const DeviceVilBuffers& buffers) const {
  const Device& device = *context_.device;
  const int64_t rows = stages_.back().plan().rows;
  const int32_t width = config_.feature_width();
  DeviceRows(device, Compute::kFp32, width)
      .Prenorm(buffers.x, context_.weights->norm.device, rows, buffers.last);
  device.Check(device.api().fill_zero(device.stream(), buffers.scores,
                                      static_cast<uint64_t>(rows) * sizeof(float)),
               "equal weights");
  const kernels::cuda::PoolPieces pieces = {
      {buffers.scores, 1, 1, 1, nullptr},
      {buffers.last, width, 0, width, kernels::DType::kFloat32},
      piece_list_,
      pieces_,
      buffers.pool};
  device.Check(device.api().pool.pieces(device.stream(), pieces), "means of tokens");
  device.Check(device.api().pool.merge(
                   device.stream(), {buffers.pool, piece0_, static_cast<int32_t>(pictures_.size()),
                                     1, width, memory_.results}),
               "merging means");
}

void DeviceVilPart::AddResults(DeviceResults& results) const {
  results.Add(memory_.results, bytes_.results);
}

}  // namespace longview::models
