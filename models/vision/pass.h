// A forward of a family of image models over a ragged batch of pictures, written once for every
// backend.
//
// A pass plans when it is made: where tokens lie and who sees whom. Then the backend has it stage
// its lists, take its buffers and run its layers. Results are fp32: the vectors that enter the head
// of all pictures, then the wanted maps [channels, rows, columns], picture by picture, stages
// rising.
#pragma once

#include <cstdint>
#include <vector>

#include "models/ops/map_ops.h"
#include "models/ops/ops.h"

namespace longview::models {

// One picture of a pass.
struct VisionPicture {
  ImageSize size;
  const PixelValues* pixels = nullptr;  // Null: only bytes are asked for.
  std::vector<int> stages;              // Wanted stages, rising.
};

// One whose bytes are asked for: with all maps, which is the most it may need.
VisionPicture WholePicture(ImageSize size, size_t stages);

// Used by one thread. Everything it was made of outlives it.
class VisionPass {
 public:
  virtual ~VisionPass() = default;

  // Floats of one picture's vector; 0 where nothing reads it.
  virtual int64_t feature_floats() const = 0;
  // Floats of all results.
  virtual int64_t result_floats() const = 0;

  // ---- In this order ----
  virtual int layers() const = 0;  // The blocks of all stages, at least 1.
  virtual void Stage(Ops& ops, MapOps& maps) = 0;
  virtual void Take(Ops& ops, MapOps& maps) = 0;
  // Where results go, in the backend's memory; before the first layer.
  virtual void set_results(float* results) = 0;
  virtual void Layer(Ops& ops, MapOps& maps, int layer) = 0;
};

// Runs the pass on fresh instances that count, which then hold its need and work.
void CountPass(VisionPass& pass, Ops& ops, MapOps& maps);

}  // namespace longview::models
