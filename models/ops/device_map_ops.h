// Operations on feature maps as work for a device's stream: nothing waits, nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cuda/pool/pool_api.h"
#include "kernels/cuda/vision/maps_api.h"
#include "models/device/device.h"
#include "models/device/device_run.h"
#include "models/device/staged_lists.h"
#include "models/ops/map_ops.h"

namespace longview::models {

// Used within a Device::Turn but for staging.
class DeviceMapOps final : public MapOps {
 public:
  // Counts.
  explicit DeviceMapOps(Compute compute) : MapOps(nullptr), compute_(compute) {}
  // Borrows the device.
  DeviceMapOps(const Device& device, Compute compute)
      : MapOps(nullptr), compute_(compute), device_(&device) {}

  // Where lists are staged; before the first Stage. An instance that counts stages over no memory.
  void StageInto(StagedLists& lists) { lists_ = &lists; }
  // scratch() bytes of an instance that counted; before the first operation.
  void UseScratch(std::byte* scratch) { UseMemory(scratch); }
  // Sets the timer that measures the work from now on.
  void set_timer(const DeviceTimer* timer) { timer_ = timer; }

  TokensRef Stage(const TokenMaps& maps) override;
  PlanesRef Stage(std::span<const WantedMap> maps) override;
  MeansRef StageMeans(std::span<const MapTokens> images) override;
  BiasRef Stage(const std::vector<MapBias>& maps, int heads, int blocks) override;
  ReductionRef Stage(const MapReduction& maps) override;
  NeighboursRef Stage(const MapNeighbours& maps) override;

  int64_t input_tail() const override;
  int64_t output_tail() const override;
  void ClearTail(const Rows&) const override {}
  int64_t sum_bytes() const override { return ElementBytes(compute_); }
  int64_t BiasFloats(const std::vector<MapBias>& maps, int heads) const override;
  LongShortRows CarveLongShort(int64_t count, int64_t width, int64_t columns, bool one_product,
                               Carver& carver) const override;

  void MakeTokens(const TokenArgs& args) override;
  void Planes(const TokensRef& tokens, const PlanesRef& maps, const Rows& x,
              float* results) override;
  void Convolve(const ConvolveArgs& args) override;
  void NormRows(const Rows& rows, const NormWeight& norm) override;
  void Means(const MeansRef& means, const Rows& x, const NormWeight* norm, float* results) override;
  void Biases(const BiasRef& biases, const Table& learned, int block, float* memory,
              std::vector<kernels::Table>& tables) override;
  void SumPositions(const PositionSumArgs& args) override;
  void ReduceMaps(const ReductionArgs& args) override;
  void AttendByFeatures(const RandomFeatureArgs& args) override;

  // REQUIRES: never called, as maps are never in slices.
  void Move(const Rows& rows, int64_t from, int64_t to, int64_t count) override;
  OpenRowsBuffers CarveOpen(const OpenRowsShape& shape, int64_t keys,
                            Carver& carver) const override;
  void BeginOpen(const OpenRowsShape& shape, const OpenRowsBuffers& buffers,
                 const Rows& queries) override;
  void AppendOpen(const Rows& keys, const Rows& values, const OpenRowsBias& bias) override;
  void FinishOpen(const Rows& out) override;
  std::byte* CarveLargeMap(const LongShortPattern& pattern, std::span<const LongShortBand> bands,
                           Carver& carver) const override;
  void AttendLargeMap(const LargeMapArgs& args) override;

 private:
  // Pictures and where their patches are, or the rows that a token is made of, [tokens, side^2].
  struct StagedTokens {
    const float* pixels = nullptr;
    const kernels::cuda::PixelImage* pictures = nullptr;
    const int32_t* taps = nullptr;
    const int32_t* rows = nullptr;  // [tokens], row-major over the maps, image after image.
    const float* down = nullptr;    // Positions of all map sizes; null without.
    const float* across = nullptr;
    const int32_t* down_rows = nullptr;    // [tokens]
    const int32_t* across_rows = nullptr;  // [tokens]
    int64_t tokens = 0;
    int64_t most = 0;  // The largest image's.
  };
  struct StagedPlanes {
    const kernels::cuda::PlaneImage* images = nullptr;
    int32_t count = 0;
    int64_t most = 0;
  };
  struct StagedPieces {
    const kernels::cuda::PoolPiece* pieces = nullptr;
    const int32_t* piece0 = nullptr;
    int32_t count = 0;
    int64_t rows = 0;
  };
  // Entries [first, first + count) of the joined table are of one map size.
  struct StagedBias {
    int64_t first = 0;
    int64_t count = 0;
    int64_t learned_entries = 0;
    const int32_t* entries = nullptr;
    std::vector<const float*> learned;  // By block; empty where the block's own is read.
  };
  struct StagedBiases {
    std::vector<StagedBias> maps;
    int64_t entries = 0;
    int heads = 1;
  };
  struct StagedReduction {
    const int32_t* from = nullptr;         // [places, side^2] rows
    const int32_t* begins = nullptr;       // [images + 1] places
    const int32_t* keys = nullptr;         // [images] first keys of places
    const int32_t* globals = nullptr;      // [images * globals] rows
    const int32_t* global_keys = nullptr;  // and the keys that they become.
  };

  struct StagedNeighbours {
    const int32_t* taps = nullptr;     // [rows, kDepthwiseTaps] rows, see DepthwiseRows.
    const int32_t* globals = nullptr;  // Rows of global tokens.
    int64_t global_count = 0;
  };

  template <typename Body>
  void Timed(double EncoderTimes::*sum, Body&& body) const {
    if (timer_ == nullptr) return body();
    timer_->Run(sum, body);
  }
  void StagePictures(const TokenMaps& maps, StagedTokens& staged);
  void StageTaps(const TokenMaps& maps, StagedTokens& staged);
  void StagePositions(const TokenMaps& maps, StagedTokens& staged);
  std::byte* Panels(int64_t rows, int64_t columns, Carver& carver) const;
  void CopyTyped(const void* in, void* out, const int32_t* from, const int32_t* to, int64_t rows,
                 int64_t width) const;
  const kernels::cuda::MapsApi& maps() const { return device_->api().maps; }

  const Compute compute_;
  const Device* const device_ = nullptr;
  StagedLists* lists_ = nullptr;
  const DeviceTimer* timer_ = nullptr;
  std::vector<StagedTokens> tokens_;
  std::vector<StagedPlanes> planes_;
  std::vector<StagedPieces> means_;
  std::vector<StagedBiases> biases_;
  std::vector<StagedReduction> reductions_;
  std::vector<StagedNeighbours> neighbours_;
};

}  // namespace longview::models
