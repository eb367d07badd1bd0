// The parts that a family of image models brings: which sizes it takes, what they cost,
// a batch that runs block by block, and its head.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/cost/work.h"
#include "models/dense/compute.h"
#include "models/dense/scratch_pool.h"
#include "models/image/pipeline.h"
#include "models/model.h"

namespace longview::models {

// Facts that a family of image models tells the shared part. Plain data, constant after load.
struct VisionFacts {
  std::string family;         // "vil"
  std::string architecture;   // architectures[0] of config.json.
  int width = 0;              // Width of the feature vector that enters the head.
  std::vector<int> strides;   // Pixels per side of a token, by stage.
  std::vector<int> channels;  // Channels of a map, by stage; empty where it cannot be a backbone.
  std::vector<std::string> labels;  // Empty: no head.
  ProblemType problem_type = ProblemType::kSingleLabel;
};

// A stage's output: [channels, size.height, size.width], fp32.
struct FeatureMap {
  int channels = 0;
  ImageSize size;
  std::vector<float> values;
};

// The demands of one image on a batch.
struct VisionInput {
  const PixelValues* pixels = nullptr;
  // Stages whose output is wanted, by index.
  std::vector<int> stages;
};

// Images on their way through the blocks. One thread uses it; it computes on all. All but Drop may
// throw what LibTorch and the allocator throw.
class VisionBatch {
 public:
  virtual ~VisionBatch() = default;

  // Runs the next block; returns whether blocks are left.
  virtual bool Advance() = 0;
  // Image i is not wanted any more.
  virtual void Drop(int i) = 0;

  // After the last block, for images that were not dropped. A result's bits do not depend on the
  // other images.
  virtual std::vector<float> Embedding(int i) const = 0;  // [width]
  virtual std::vector<float> Logits(int i) const = 0;     // [labels]
  // Maps of the stages asked for, in that order. Once.
  virtual std::vector<FeatureMap> TakeMaps(int i) = 0;
};

// A loaded family. Thread-safe but for Begin, which belongs to the executor's thread.
class VisionFamily {
 public:
  virtual ~VisionFamily() = default;

  virtual const VisionFacts& facts() const = 0;
  virtual Compute compute() const = 0;
  virtual double parameters() const = 0;
  virtual double memory_bytes() const = 0;
  // Bytes kept of what follows from sizes, such as plans of attention.
  virtual size_t plan_bytes() const = 0;
  // The size a plain request of the model has, for warm-up.
  virtual ImageSize typical_size() const = 0;

  // INVALID_ARGUMENT if the weights do not fit pixels of this size.
  virtual absl::Status CheckSize(ImageSize size) const = 0;

  // REQUIRES: inputs, scratch and this outlive the batch; sizes passed CheckSize. `times` is added
  // to, unless null.
  virtual std::unique_ptr<VisionBatch> Begin(std::span<const VisionInput> inputs,
                                             ScratchPool& scratch, RunTimes* times) const = 0;

  // Exact bytes that an image of this size uses beside weights and results when it is alone.
  virtual size_t WorkspaceBytes(ImageSize size) const = 0;

  virtual EncoderWork WorkOf(ImageSize size) const = 0;
};

}  // namespace longview::models
