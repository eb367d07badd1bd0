// A forward through stages of blocks: what families share whose stages are a convolution that makes
// tokens of the map before, or of pixels, and a number of blocks over a ragged batch. The
// residual stream is fp32 in every compute type.
//
// The results of a pass are the vectors that enter the head of all pictures of the ragged batch,
// then the wanted maps [channels, rows, columns], picture by picture, stages rising.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/forward/forward.h"
#include "models/image/pipeline.h"
#include "models/ops/feed_forward.h"
#include "models/vision/make_tokens.h"
#include "models/vision/map_means.h"
#include "models/vision/map_planes.h"

namespace longview::models {

// One picture of a pass.
struct VisionPicture {
  ImageSize size;
  const PixelValues* pixels = nullptr;  // Null: only bytes are asked for.
  std::vector<int> stages;              // Wanted stages, rising.
};

// One whose bytes are asked for: with all maps, which is the most it may need.
VisionPicture WholePicture(ImageSize size, size_t stages);

class StagedPass : public Forward {
 public:
  int layers() const final { return static_cast<int>(layers_.size()); }
  void Stage(Backend& backend) final;
  void Take(Backend& backend) final;
  // Tokens are made by the first layer of every stage.
  void Embed(Backend&) final {}
  void Layer(Backend& backend, int layer) final;
  std::vector<Rows> Results() const final { return {results_}; }

 protected:
  // A stage's tokens: where they lie, and the convolution that makes them.
  struct StageMaps {
    std::span<const MapTokens> images;
    int64_t rows = 0;
    int64_t width = 0;
    int channels = 3;  // Channels of the map before, or of pixels.
    int side = 1;      // The convolution's.
    int stride = 1;
    int padding = 0;
    int blocks = 1;
    int globals = 0;                                // Rows of every image before its tokens.
    std::function<MapPositions(size_t)> positions;  // See TokenMaps.
  };
  // The vector that enters the head: the norm of the first global row, the mean of all rows' norms,
  // or the norm of all rows' mean.
  enum class Feature { kNone, kClassRow, kNormedMean, kMean };
  struct EmbedWeights {
    const Weight* weight = nullptr;
    const NormWeight* norm = nullptr;   // Null: none.
    const Table* class_rows = nullptr;  // [globals, width]; null: none.
  };

  // `pictures` as they come; stages are given to Begin.
  explicit StagedPass(std::span<const VisionPicture> pictures)
      : pictures_(pictures.begin(), pictures.end()) {}
  // Once, when a family has planned: `norm` is the one before the head.
  void Begin(std::vector<StageMaps> stages, Feature feature, const NormWeight* norm);

  virtual EmbedWeights EmbedOf(size_t stage) const = 0;
  // Lists and memory that the blocks of a stage need beside its rows.
  virtual void StageLists(Backend& backend, size_t stage) = 0;
  virtual void CarveStage(Backend& backend, size_t stage, Carver& carver) = 0;
  // x of the stage, [rows, width], by its blocks.
  virtual void RunBlock(Backend& backend, size_t stage, int block) = 0;

  // The steps behind attention, whose output is `z`, for these rows of x: part by part, so that the
  // MLP's hidden layer never exists as a whole on a device.
  static void FeedForwardInParts(Backend& backend, const BlockWeights& weights, const Rows& x,
                                 const Rows& z);

  const Rows& x(size_t stage) const { return x_[stage]; }
  std::span<const VisionPicture> pictures() const { return pictures_; }
  // Rows of a stage's global tokens, [images * globals].
  IndexRef global_rows(size_t stage) const { return global_rows_ref_[stage]; }

 private:
  struct Place {
    size_t stage = 0;
    int block = 0;
  };

  void PlaceResults();
  void CarveAll(Backend& backend, size_t stage, Carver& carver);
  void MakeTokens(Backend& backend, size_t stage);
  void MakeFeatures(Backend& backend);

  const std::vector<VisionPicture> pictures_;
  std::vector<StageMaps> stages_;
  std::vector<Place> layers_;
  bool features_ = false;
  Feature feature_ = Feature::kNone;
  const NormWeight* norm_ = nullptr;
  int64_t result_floats_ = 0;
  Rows results_;

  // Staged lists, by stage.
  std::vector<TokenMaps> tokens_;
  std::vector<TokensRef> tokens_ref_;
  std::vector<std::vector<WantedMap>> wanted_;
  std::vector<PlanesRef> wanted_ref_;
  std::vector<std::vector<int32_t>> global_rows_, class_entries_;
  std::vector<IndexRef> global_rows_ref_, class_entries_ref_;
  std::vector<int32_t> feature_rows_;
  IndexRef feature_rows_ref_;
  MeansRef means_ref_;

  std::vector<Rows> x_;           // By stage; neighbours lie at either end of one block.
  std::vector<Rows> class_rows_;  // [images * globals, width] while tokens are made.
};

}  // namespace longview::models
