// Operations on feature maps on LibTorch's threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "models/layers/compute_context.h"
#include "models/layers/stopwatch.h"
#include "models/ops/map_ops.h"

namespace longview::models {

class HostMapOps final : public MapOps {
 public:
  // Counts.
  explicit HostMapOps(const ComputeContext& context) : HostMapOps(context, nullptr, nullptr) {}
  // `scratch` holds scratch() bytes of an instance that counted, 64-byte aligned. All is borrowed;
  // `times` may be null.
  HostMapOps(const ComputeContext& context, std::byte* scratch, EncoderTimes* times);

  TokensRef Stage(const TokenMaps& maps) override;
  PlanesRef Stage(std::span<const WantedMap> maps) override { return {maps, -1}; }
  MeansRef StageMeans(std::span<const MapTokens> images) override { return {images, -1}; }
  BiasRef Stage(const std::vector<MapBias>& maps, int, int) override { return {&maps, -1}; }
  ReductionRef Stage(const MapReduction& maps) override { return {&maps, -1}; }
  NeighboursRef Stage(const MapNeighbours& maps) override { return {&maps, -1}; }

  int64_t input_tail() const override;
  int64_t output_tail() const override { return 0; }
  void ClearTail(const Rows& rows) const override;
  int64_t sum_bytes() const override { return sizeof(float); }
  int64_t BiasFloats(const std::vector<MapBias>&, int) const override { return 0; }
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

  void Move(const Rows& rows, int64_t from, int64_t to, int64_t count) override;
  OpenRowsBuffers CarveOpen(const OpenRowsShape& shape, int64_t keys,
                            Carver& carver) const override {
    return CarveOpenRows(shape, context_, keys, carver);
  }
  void BeginOpen(const OpenRowsShape& shape, const OpenRowsBuffers& buffers,
                 const Rows& queries) override;
  void AppendOpen(const Rows& keys, const Rows& values, const OpenRowsBias& bias) override;
  void FinishOpen(const Rows& out) override;
  std::byte* CarveLargeMap(const LongShortPattern& pattern, std::span<const LongShortBand> bands,
                           Carver& carver) const override;
  void AttendLargeMap(const LargeMapArgs& args) override;

 private:
  bool counts() const { return counts_; }

  const ComputeContext context_;
  const bool counts_;
  EncoderTimes* const times_;
  std::vector<std::vector<MapPositions>> positions_;  // By staged tokens, by image.
  std::optional<OpenRows> open_;
  OpenRowsShape open_shape_;
};

}  // namespace longview::models
