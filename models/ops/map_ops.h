// Operations on feature maps among the rows of a ragged batch, beside those of ops.h: tokens made
// of pixels or of another map, convolutions, biases by distance, keys summed over places, planes,
// means.
//
//   host_map_ops     on LibTorch's threads
//   device_map_ops   as work for a device's stream
//
// Each backend's instance without memory computes nothing: it counts what the same calls stage and
// use. What is staged is borrowed and outlives the forward. A row's bits depend on that row, or on
// the map it belongs to, alone. One thread uses an instance. Operations throw what LibTorch throws,
// and DeviceError.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "models/dense/scratch.h"
#include "models/encoder/work.h"
#include "models/image/pipeline.h"
#include "models/layers/open_rows.h"
#include "models/long_short/map_bands.h"
#include "models/ops/ops.h"
#include "models/vision/map_tokens.h"

namespace longview::models {

// Added to the variance of an instance norm (torch.nn.InstanceNorm2d's default).
inline constexpr float kInstanceNormEps = 1e-5f;

// Sums that tokens of a map get by their place: by row [height, width / 2] in the first half of a
// token, by column [width, width / 2] in the other.
struct MapPositions {
  std::span<const float> down, across;
};

// A convolution that makes the tokens of maps from the maps before, or from pictures.
struct TokenMaps {
  std::span<const MapTokens> images;
  std::span<const MapTokens> before;       // Empty: pictures.
  std::vector<ImageSize> sizes;            // The pictures'.
  std::vector<const PixelValues*> pixels;  // Null while bytes are counted.
  int channels = 3;
  int width = 0;  // Elements of a token.
  int side = 1;   // The kernel's.
  int stride = 1;
  int padding = 0;                                // Zeros around the maps.
  std::function<MapPositions(size_t)> positions;  // By image, asked when it is staged; or none.
};
struct TokensRef {
  const TokenMaps* maps = nullptr;
  int staged = -1;
};
struct TokenArgs {
  TokensRef tokens;
  // Columns are (row, column, channel) of the kernel, of pixels (channel, row, column).
  const Weight* weight = nullptr;
  const NormWeight* norm = nullptr;  // Null: none.
  Rows before;                       // [.., channels] fp32; not given: pictures.
  Rows x;                            // [rows, d] fp32
};

// Maps whose tokens see those beside them, and which token a row is: by image and row behind row0
// its row-major position, -1 for global ones.
struct MapNeighbours {
  std::span<const MapTokens> images;
  std::vector<std::shared_ptr<const std::vector<int32_t>>> positions;
};
struct NeighboursRef {
  const MapNeighbours* maps = nullptr;
  int staged = -1;
};

inline constexpr int kDepthwiseTaps = 9;

// A depthwise convolution of 3 x 3 taps with a border of zeros, then a linear over channels.
struct Separable {
  Table taps;  // [kDepthwiseTaps, C]
  Table bias;  // [1, C]
  Weight pointwise;
};
struct ConvolveArgs {
  NeighboursRef maps;
  const Separable* layer = nullptr;
  // T rows from the batch's row `from0` on; neighbours of what is wanted are among them. A device
  // reads dense ones, of the whole batch.
  Rows from;
  int64_t from0 = 0;
  int64_t first = 0;  // The batch's row that is out's first.
  Rows out;           // T, or fp32; dense on a device, with an output's tail.
  // Global rows become those of `from`; else the linear alone treats them.
  bool copies_globals = false;
};

// A map that is wanted as planes, [d, tokens].
struct WantedMap {
  int image = 0;       // Its number among the maps.
  int64_t token0 = 0;  // Its tokens among those of all images.
  int64_t tokens = 0;
  int64_t out0 = 0;  // Floats of the results.
};
struct PlanesRef {
  std::span<const WantedMap> maps;
  int staged = -1;
};

// Every image's rows, for means.
struct MeansRef {
  std::span<const MapTokens> images;
  int staged = -1;
};

// Biases between the tokens of a map of one size: column rows[i] of a learned table [heads,
// learned] is entry i.
struct MapBias {
  std::span<const int32_t> rows;
  int64_t learned = 0;
  // A device's: whether the table is of another size and has to be asked for.
  bool resized = false;
  // By block: on the host the entries [heads, rows], on a device the resized table
  // [heads, learned].
  std::function<std::span<const float>(int)> of_block;
};
struct BiasRef {
  const std::vector<MapBias>* maps = nullptr;
  int staged = -1;
};

// Keys and values that are sums of a map's rows by learned weights [tokens, columns] (Linformer).
struct PositionSumArgs {
  const Table* keys = nullptr;
  const Table* values = nullptr;
  IndexRef begins;  // [images + 1] rows
  std::span<const MapTokens> images;
  Rows from_keys, from_values;  // T [rows, d]
  Rows out;                     // TakeSums rows [images * columns, 2d]
};

// Keys and values of places that a convolution of side x side leaves of maps, normalised by column,
// behind those of the global tokens (spatial reduction).
struct MapReduction {
  std::span<const MapTokens> images;
  int side = 1;
  int globals = 0;
  int64_t places = 0;  // All images'.
};
struct ReductionRef {
  const MapReduction* maps = nullptr;
  int staged = -1;
};
struct ReductionArgs {
  ReductionRef maps;
  const Weight* reduce = nullptr;     // [d, side * side * d]
  const Weight* key_value = nullptr;  // [2d, d]
  Rows from;                          // T [rows, d]
  Rows out;                           // TakeSums rows [globals + places, 2d]
};

// Attention by positive random features (kernels/pool/performer.h).
struct RandomFeatureArgs {
  Rows qkv;  // T [rows, 3d]
  Rows out;  // T [rows, d]
  int heads = 1;
  int features = 1;
  const Table* projection = nullptr;  // [features, d / heads]
  IndexRef offsets;                   // [images + 1] rows
  int64_t longest = 0;                // Rows of the largest image.
};

// The rows of x that long-short attention of a large map asks for, when it needs them and as often
// as it takes. Tokens [begin, end) by rank.
class LargeMapRows {
 public:
  virtual ~LargeMapRows() = default;
  // Their scores, into LargeMapArgs::scores and value_scores.
  virtual void Score(int64_t begin, int64_t end) const = 0;
  // T [end - begin, 3d]; without `queries` these are not read.
  virtual void Project(int64_t begin, int64_t end, bool queries, std::byte* to) const = 0;
  virtual void ProjectClass(std::byte* to) const = 0;  // T [class tokens, 3d]
  virtual std::vector<kernels::Table> Tables(size_t shape) const = 0;
};
struct LargeMapArgs {
  const LongShortPattern* pattern = nullptr;
  const LongShortBand* band = nullptr;
  const NormWeight* landmark_norm = nullptr;
  Rows qkv;                       // T [slice rows, 3d]
  Rows out;                       // T [rows, d] with a panel's tail.
  float* scores = nullptr;        // [tokens, h r]; may share out's memory.
  float* value_scores = nullptr;  // The same where values have weights of their own.
  std::byte* memory = nullptr;    // CarveLargeMap's,
  bool in_scratch = false;        // in place of which is scratch, where `rows` take none.
  const LargeMapRows* rows = nullptr;
};

class MapOps {
 public:
  virtual ~MapOps() = default;

  // The counts of an instance without memory: scratch in bytes, and work.
  size_t scratch() const { return scratch_bytes_; }
  const EncoderWork& work() const { return work_; }

  // ---- Lists, before the first operation ----
  virtual TokensRef Stage(const TokenMaps& maps) = 0;
  virtual PlanesRef Stage(std::span<const WantedMap> maps) = 0;
  virtual MeansRef StageMeans(std::span<const MapTokens> images) = 0;
  virtual BiasRef Stage(const std::vector<MapBias>& maps, int heads, int blocks) = 0;
  virtual ReductionRef Stage(const MapReduction& maps) = 0;
  virtual NeighboursRef Stage(const MapNeighbours& maps) = 0;

  // ---- Memory ----
  // Rows past its end that a linear may read, and may write.
  virtual int64_t input_tail() const = 0;
  virtual int64_t output_tail() const = 0;
  // Zeros behind rows with an input's tail, where what lies there slows products down.
  virtual void ClearTail(const Rows& rows) const = 0;
  // Sums over rows are fp32 on the host, T on a device.
  virtual int64_t sum_bytes() const = 0;
  // Floats that Biases writes tables to.
  virtual int64_t BiasFloats(const std::vector<MapBias>& maps, int heads) const = 0;
  // Queries, keys and values of long-short attention, side by side or with memory of their own;
  // where one product makes them, behind them room for `columns` of scores.
  virtual LongShortRows CarveLongShort(int64_t count, int64_t width, int64_t columns,
                                       bool one_product, Carver& carver) const = 0;

  // ---- Work ----
  virtual void MakeTokens(const TokenArgs& args) = 0;
  virtual void Planes(const TokensRef& tokens, const PlanesRef& maps, const Rows& x,
                      float* results) = 0;
  virtual void Convolve(const ConvolveArgs& args) = 0;
  // rows = norm(rows) in T. REQUIRES: dense rows on a device.
  virtual void NormRows(const Rows& rows, const NormWeight& norm) = 0;
  // results [images, d] = the mean of norm(x) over an image's rows; norm null: of x.
  virtual void Means(const MeansRef& means, const Rows& x, const NormWeight* norm,
                     float* results) = 0;
  // Adds the tables of a call of attention: `learned` is the block's own.
  virtual void Biases(const BiasRef& biases, const Table& learned, int block, float* memory,
                      std::vector<kernels::Table>& tables) = 0;
  virtual void SumPositions(const PositionSumArgs& args) = 0;
  virtual void ReduceMaps(const ReductionArgs& args) = 0;
  virtual void AttendByFeatures(const RandomFeatureArgs& args) = 0;

  // ---- Large maps in slices; a device keeps maps as a whole and has none of these ----
  // Rows [from, from + count) become rows [to, to + count).
  virtual void Move(const Rows& rows, int64_t from, int64_t to, int64_t count) = 0;
  // Rows that see a map which comes in slices: see layers/open_rows.h. One set of them at a time.
  virtual OpenRowsBuffers CarveOpen(const OpenRowsShape& shape, int64_t keys,
                                    Carver& carver) const = 0;
  virtual void BeginOpen(const OpenRowsShape& shape, const OpenRowsBuffers& buffers,
                         const Rows& queries) = 0;
  virtual void AppendOpen(const Rows& keys, const Rows& values, const OpenRowsBias& bias) = 0;
  virtual void FinishOpen(const Rows& out) = 0;
  // Memory of AttendLargeMap, for the largest of these bands.
  virtual std::byte* CarveLargeMap(const LongShortPattern& pattern,
                                   std::span<const LongShortBand> bands, Carver& carver) const = 0;
  virtual void AttendLargeMap(const LargeMapArgs& args) = 0;

 protected:
  explicit MapOps(std::byte* scratch) : memory_(scratch) {}

  // Scratch of one operation, from the start of the memory.
  Carver BeginScratch() const { return Carver(memory_); }
  // Whether an operation that took this much runs; else it is counted.
  bool Runs(const Carver& taken) {
    if (memory_ != nullptr) return true;
    scratch_bytes_ = std::max(scratch_bytes_, taken.used());
    return false;
  }
  void UseMemory(std::byte* scratch) { memory_ = scratch; }
  EncoderWork& counted() { return work_; }

 private:
  std::byte* memory_;
  size_t scratch_bytes_ = 0;
  EncoderWork work_;
};

}  // namespace longview::models
