// A batch of images on its way through stages of blocks: what backbones share whose stages are a
// convolution that makes tokens and a number of equal blocks over ragged rows. The residual stream
// is fp32 in both compute types.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/dense/layer.h"
#include "models/dense/scratch.h"
#include "models/dense/scratch_keeper.h"
#include "models/layers/compute_context.h"
#include "models/layers/stopwatch.h"
#include "models/layers/weight_loader.h"
#include "models/vision/family.h"
#include "models/vision/map_tokens.h"

namespace longview::models {

// See VisionBatch. Images dropped before the first block never enter; later ones stay, as their
// rows lie between those of others.
class StagedBatch : public VisionBatch {
 public:
  bool Advance() final;
  void Drop(int i) final { dropped_[i] = true; }
  std::vector<float> Embedding(int i) const final { return features_[i]; }
  std::vector<float> Logits(int i) const final;
  std::vector<FeatureMap> TakeMaps(int i) final { return std::move(maps_[i]); }

 protected:
  // REQUIRES: the context outlives the batch, too.
  StagedBatch(const ComputeContext& context, std::span<const VisionInput> inputs,
              ScratchKeeper& scratch, EncoderTimes* times);

  // The residual stream [rows, width] of a stage, and where the members' tokens lie in it.
  struct Stream {
    float* x = nullptr;
    int64_t width = 0;
    std::span<const MapTokens> images;
  };
  // The convolution that makes a stage's tokens of the map before, or of pixels.
  struct TokenMaker {
    const DenseLayer* layer = nullptr;  // Columns in the order of GatherRows or GatherPixels.
    const Norm* norm = nullptr;         // May be null.
    int kernel = 1;
    int stride = 1;
    int padding = 0;
    std::byte* panel = nullptr;  // Room for a panel of gathered taps.
  };

  virtual size_t Stages() const = 0;
  virtual int Blocks(size_t stage) const = 0;
  // Once, before the first stage, for the images that take part; then Carve, to measure and to get
  // the buffers.
  virtual void Plan(std::span<const ImageSize> sizes) = 0;
  virtual void Carve(Carver& carver) = 0;
  // Of a stage that runs, or ran before it.
  virtual Stream StreamOf(size_t stage) const = 0;
  // Of the stage that begins.
  virtual TokenMaker Tokens() const = 0;
  // Adds to a token [width] what depends on its place. Thread-safe.
  virtual void AddPlace(TokenFinder::Place, float* /*token*/) const {}
  // Once the stage has its tokens, the map before is not read any more: its other rows.
  virtual void EnterStage() = 0;
  virtual void RunBlock() = 0;
  // The vector that enters the head, after the last block; empty where nothing reads it.
  virtual std::vector<float> Feature(int member) const = 0;
  // REQUIRES: the model has a head.
  virtual const DenseLayer& Head() const = 0;

  // Where the batch is.
  size_t stage() const { return stage_; }
  int block() const { return block_; }
  EncoderTimes* times() const { return times_; }

 private:
  bool Start();
  void MakeTokens();
  void KeepMaps();

  const ComputeContext& context_;
  std::vector<VisionInput> inputs_;
  ScratchKeeper& scratch_;
  EncoderTimes* const times_;
  std::vector<bool> dropped_;
  std::vector<int> members_;  // The images that take part, by index as given.
  std::unique_ptr<ScratchLoan> loan_;
  bool started_ = false;
  size_t stage_ = 0;
  int block_ = 0;
  std::vector<std::vector<float>> features_;   // By index as given.
  std::vector<std::vector<FeatureMap>> maps_;  // The same.
};

}  // namespace longview::models
