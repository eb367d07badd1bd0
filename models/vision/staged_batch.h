// A batch of images on its way through stages of blocks: what backbones share whose stages are an
// embedding and a number of equal blocks over ragged rows.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/dense/scratch.h"
#include "models/dense/scratch_keeper.h"
#include "models/layers/stopwatch.h"
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
  std::vector<FeatureMap> TakeMaps(int i) final { return std::move(maps_[i]); }

 protected:
  StagedBatch(std::span<const VisionInput> inputs, ScratchKeeper& scratch, EncoderTimes* times);

  // Rows of one image in the stage that runs: the residual stream [rows, width].
  struct Rows {
    const float* x = nullptr;
    int64_t width = 0;
    const MapTokens* tokens = nullptr;
  };

  virtual size_t Stages() const = 0;
  virtual int Blocks(size_t stage) const = 0;
  // Once, before the first stage, for the images that take part; then Carve, to measure and to get
  // the buffers.
  virtual void Plan(std::span<const ImageSize> sizes) = 0;
  virtual void Carve(Carver& carver) = 0;
  // Fills the rows of the stage that begins.
  virtual void Embed() = 0;
  virtual void RunBlock() = 0;
  virtual Rows RowsOf(int member) const = 0;
  // The vector that enters the head, after the last block; empty where nothing reads it.
  virtual std::vector<float> Feature(int member) const = 0;

  // Where the batch is.
  size_t stage() const { return stage_; }
  int block() const { return block_; }
  EncoderTimes* times() const { return times_; }
  // Member m is the m-th image that takes part.
  const PixelValues& pixels(int member) const { return *inputs_[members_[member]].pixels; }

 private:
  bool Start();
  void KeepMaps();

  std::vector<VisionInput> inputs_;
  ScratchKeeper& scratch_;
  EncoderTimes* const times_;
  std::vector<bool> dropped_;
  std::vector<int> members_;  // By index as given.
  std::unique_ptr<ScratchLoan> loan_;
  bool started_ = false;
  size_t stage_ = 0;
  int block_ = 0;
  std::vector<std::vector<float>> features_;   // By index as given.
  std::vector<std::vector<FeatureMap>> maps_;  // The same.
};

}  // namespace longview::models
