// Chunked attention of a stage: its images as bands, large maps in slices.
#include <algorithm>
#include <utility>

#include "kernels/span/chunk_grid_planner.h"
#include "kernels/span/chunk_map.h"
#include "models/vil/stage_plan.h"

namespace longview::models {
namespace {

// A large map has at least so many slices: their buffers stay small beside it.
constexpr int kSlices = 12;

// A slice by rows of chunks: those in the buffers, and of them those whose outputs are made.
struct ChunkRows {
  int load_begin = 0, load_end = 0;
  int begin = 0, end = 0;
};

class BandPlanner {
 public:
  BandPlanner(const VilContext& context, size_t index, bool measure, VilStagePlan& plan)
      : context_(context),
        index_(index),
        stage_(context.config->stages[index]),
        measure_(measure),
        plan_(plan) {
    const VilConfig& config = *context.config;
    separate_ = stage_.globals > 0 && !config.share_w;
    pattern_.heads = stage_.heads;
    pattern_.chunk = stage_.features;
    pattern_.globals = stage_.globals;
    pattern_.rule = config.exactness == 0  ? kernels::ChunkRule::kChunks
                    : config.exactness > 0 ? kernels::ChunkRule::kExact
                                           : kernels::ChunkRule::kCyclic;
    pattern_.own_chunk_only = config.own_chunk_only;
    pattern_.only_global = config.only_global;
    pattern_.bias = stage_.relative_bias();
    pattern_.tile_rows = context.tile_rows();
  }

  void Run() {
    const auto images = static_cast<int>(plan_.images.size());
    if (!CanCut()) {
      AddWhole(0, images);
      return;
    }
    int first = 0;
    int64_t tokens = 0;
    for (int i = 0; i < images; ++i) {
      const int64_t count = plan_.images[i].count();
      const bool large = count > context_.band_tokens;
      if (large || tokens + count > context_.band_tokens) {
        AddWhole(first, i);
        first = i;
        tokens = 0;
      }
      tokens += count;
      if (!large) continue;
      AddSlices(i);
      first = i + 1;
      tokens = 0;
    }
    AddWhole(first, images);
  }

 private:
  // Chunks that wrap around reach from the last row to the first; separate projections and tokens
  // without local keys are ablations of small maps.
  bool CanCut() const {
    return !separate_ && !pattern_.only_global && pattern_.rule != kernels::ChunkRule::kCyclic;
  }

  void AddWhole(int first, int end) {
    if (first == end) return;
    const BandImages images(std::span(plan_.images).subspan(first, end - first));
    VilBand& band = plan_.bands.emplace_back();
    band.row0 = images.row0;
    band.rows = images.rows;
    band.attention = Whole(images, true, stage_.globals > 0 && !separate_);
    if (separate_) plan_.globals = Whole(images, false, true);
  }

  // Attention of whole images: their local rows, their global ones or both.
  VilAttentionPlan Whole(const BandImages& images, bool local_rows, bool global_rows) {
    return WithBiases(
        images.sizes,
        context_.shapes->Of<VilPlan>(
            ShapeKey(ShapeKind::kBandPlan, index_, images.maps, {local_rows, global_rows}), [&] {
              std::vector<kernels::ChunkImage> placed;
              for (const BandImages::Image& image : images.images) {
                placed.push_back({image.row0, image.map.height, image.map.width, image.size});
              }
              return Plan(placed, local_rows, global_rows);
            }));
  }

  void AddSlices(int image) {
    const ImageSize map = plan_.images[image].map;
    const kernels::ChunkMap chunks(map.height, map.width, stage_.features);
    const int64_t of_row = int64_t{stage_.features} * map.width;
    const int rows = chunks.chunk_rows();
    const int step = static_cast<int>(std::max<int64_t>(
        (rows + kSlices - 1) / kSlices, (context_.band_tokens + of_row - 1) / of_row));
    for (int begin = 0; begin < rows; begin += step) {
      const int end = std::min(begin + step, rows);
      AddSlice(image, chunks, {std::max(begin - 1, 0), std::min(end + 1, rows), begin, end});
    }
  }

  void AddSlice(int image, const kernels::ChunkMap& chunks, ChunkRows slice) {
    const auto rank = [&](int chunk_row) {
      return std::min<int64_t>(int64_t{chunk_row} * stage_.features * chunks.cols(),
                               int64_t{chunks.rows()} * chunks.cols());
    };
    VilBand band;
    band.image = image;
    band.row0 = plan_.images[image].row0;
    band.load_begin = rank(slice.load_begin);
    band.load_end = rank(slice.load_end);
    band.begin = rank(slice.begin);
    band.end = rank(slice.end);
    band.rows = stage_.globals + band.load_end - band.load_begin;
    const auto height = static_cast<int>((band.load_end - band.load_begin) / chunks.cols());
    const auto first = static_cast<int32_t>(stage_.globals + band.begin - band.load_begin);
    const auto last = static_cast<int32_t>(first + band.end - band.begin);
    band.attention = Slice({height, chunks.cols()}, first, last);
    plan_.bands.push_back(std::move(band));
  }

  // Rows [first, last) of a slice. Slices in the middle of a map are alike.
  VilAttentionPlan Slice(ImageSize size, int32_t first, int32_t last) {
    return WithBiases({&size, 1},
                      context_.shapes->Of<VilPlan>(
                          ShapeKey(ShapeKind::kSlicePlan, index_, {&size, 1}, {first, last}), [&] {
                            const kernels::ChunkImage image{0, size.height, size.width, 0};
                            VilPlan slice = Plan({&image, 1}, true, false);
                            std::erase_if(slice.plan.items, [&](const kernels::Item& item) {
                              const int32_t row = slice.plan.tiles[item.tile].row0;
                              return row < first || row >= last;
                            });
                            return slice;
                          }));
  }

  VilPlan Plan(std::span<const kernels::ChunkImage> images, bool local_rows, bool global_rows) {
    pattern_.local_rows = local_rows;
    pattern_.global_rows = global_rows;
    kernels::ChunkGridPlan grid = PlanChunkGrid(pattern_, images);
    VilPlan plan{std::move(grid.plan), std::move(grid.bias_rows)};
    if (context_.on_device()) JoinTables(kGlobalTables, plan);
    return plan;
  }

  VilAttentionPlan WithBiases(std::span<const ImageSize> sizes,
                              std::shared_ptr<const VilPlan> plan) const {
    VilAttentionPlan made{std::move(plan), {sizes.begin(), sizes.end()}, {}};
    if (pattern_.bias && !measure_) {
      made.maps = VilMapsOf(context_, index_, sizes, made.made->bias_rows);
    }
    return made;
  }

  const VilContext& context_;
  const size_t index_;
  const VilStage& stage_;
  const bool measure_;
  VilStagePlan& plan_;
  bool separate_ = false;
  kernels::ChunkPattern pattern_;
};

}  // namespace

void PlanChunkBands(const VilContext& context, size_t stage, bool measure, VilStagePlan& plan) {
  BandPlanner(context, stage, measure, plan).Run();
}

}  // namespace longview::models
