// The operations that forwards are written in: a family calls them once, over rows of a ragged
// batch, and a backend executes them.
//
//   host_ops     on LibTorch's threads, fused panel by panel
//   device_ops   as work for a device's stream
//   count_ops    nowhere: adds up bytes and multiply-adds, from which cost, workspace and Estimate
//                come
//
// A forward makes the same calls in the same order on all of them: it stages its plans and lists,
// takes its buffers, then computes layer by layer. A row's bits never depend on the batch.
//
// Rows of RowType::kCompute are "T". Residual streams are fp32. One thread uses an instance.
// Operations throw what LibTorch throws, and DeviceError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cache/cache_step.h"
#include "kernels/cuda/outer/outer_api.h"
#include "kernels/cuda/token/token_api.h"
#include "kernels/outer/running_outer.h"
#include "kernels/pool/slice_pool.h"
#include "kernels/pool/slice_rows.h"
#include "kernels/span/executor.h"
#include "models/dense/compute.h"
#include "models/dense/rowwise.h"
#include "models/dense/scratch.h"
#include "models/layers/block_tail.h"
#include "models/ops/open_segments.h"
#include "models/ops/rows.h"
#include "models/ops/weight.h"

namespace longview::models {

// A staged plan of attention. Borrows the plan, which lives as long as the forward uses it.
struct PlanRef {
  const kernels::Plan* plan = nullptr;
  int staged = -1;  // Its number among the plans that a device was given.
  // Whether its rows decode, one of a sequence: a device has a kernel for them that is bound by
  // reading keys. Such a plan is cut for it (kernels/cuda/span/decode_plan.h).
  bool decodes = false;
};

// A staged list of row numbers or ids, in the memory that the backend reads.
struct IndexRef {
  const int32_t* data = nullptr;
  int64_t count = 0;
};

// Staged segments of rows, each pooled by itself.
struct SegmentsRef {
  std::span<const int32_t> offsets;  // One entry more than segments.
  const uint8_t* visible = nullptr;  // [rows] on the host, 0 = left out.
  int staged = -1;                   // Its number among those that a device was given.
};

// Staged slices of documents, in the memory that the backend reads.
struct SlicesRef {
  const kernels::SliceRows* data = nullptr;
  const uint8_t* visible = nullptr;  // [rows], 0 = left out.
  int64_t count = 0;
};

// x = factor * words[ids] + positions[places] + types[kinds], then x = norm(x) where there is one.
struct EmbedArgs {
  const Table* words = nullptr;
  const Table* positions = nullptr;  // Null: none, as below.
  const Table* types = nullptr;
  IndexRef ids, places, kinds;  // [rows]
  float factor = 1;
  bool rounds_words = false;  // On the host factor * words is rounded before it is added to.
  const NormWeight* norm = nullptr;
  Rows x;      // [rows, width] fp32
  Rows input;  // T [rows, width] gets a copy of x; not given: none.
};

// Rotary positions of queries and keys: the halves of a head's vector turned against each other by
// the angles of its row's place.
struct Rotary {
  const Table* angles = nullptr;  // Values [places, D]: D / 2 cosines, then D / 2 sines.
  IndexRef places;                // [rows]
  int64_t columns = 0;            // The first ones of a row, heads of D side by side.
};

// The part of a transformer layer behind attention; see models/layers/block_tail.h.
struct BlockWeights {
  const Weight* out = nullptr;  // Null: attention's output is added as it is.
  const NormWeight* after_attention = nullptr;
  const Weight* expand = nullptr;
  const Weight* gate = nullptr;  // act(expand(y)) * gate(y); null: none.
  const Weight* contract = nullptr;
  const NormWeight* after_layer = nullptr;  // Pre-norm: of what reads the layer's output next.
  const NormWeight* last = nullptr;         // x = norm(x) behind all, in fp32; null: none.
  Activation activation = Activation::kGelu;
  NormPlace norms = NormPlace::kPost;
};

struct BlockRows {
  Rows x;      // [rows, width] fp32 residual stream.
  Rows input;  // T [rows, width] what the next layer reads; may be x.
  Rows z;      // T [rows, width] attention's output.
};

// Long-short attention (Zhu et al. 2021, section 3.2): queries, and keys and values in two forms.
struct LongShortRows {
  Rows q;                     // T [rows, d]
  Rows keys, values;          // T [rows, d] normalised.
  Rows own_keys, own_values;  // T [rows, d] as projected, of the rows behind the normalised ones.
  Rows scores;                // [normalised rows, heads * rank] fp32, of the dynamic projection.

  // Rows from `row` on, `count` of them, which decode or not.
  LongShortRows Part(int64_t row, int64_t count, bool few) const {
    LongShortRows part = *this;
    for (Rows* rows :
         {&part.q, &part.keys, &part.values, &part.own_keys, &part.own_values, &part.scores}) {
      *rows = rows->Part(row, count, few);
    }
    return part;
  }
};

// Projected keys and values of every segment: `rank` landmarks per head, each the mean of its
// segment's rows weighted by softmax(scores), heads side by side, then a LayerNorm where there is
// one. A segment's own row, where there is one, comes before its landmarks.
struct LandmarkArgs {
  SegmentsRef segments;
  LongShortRows from;
  Rows value_scores;  // As from.scores, where values have weights of their own.
  int heads = 1;
  int rank = 0;
  const NormWeight* norm = nullptr;  // Null: none.
  bool own_rows = false;  // Row segments.offsets.back() + s of from.own_* belongs to segment s.
  Rows out;               // T [segments * landmarks, 2d], keys | values.

  int64_t sequences() const { return static_cast<int64_t>(segments.offsets.size()) - 1; }
  int64_t landmarks() const { return rank + (own_rows ? 1 : 0); }
  int64_t columns() const { return int64_t{heads} * rank; }
  int64_t width() const { return from.q.width; }
};

// Global rows of one sequence, few enough that their key and value projections are folded into one
// vector per head and row (no product over all tokens): q W_k x = (q W_k) x.
struct FoldGroup {
  int32_t row0;  // Rows of the sequence.
  int32_t tokens;
  int32_t first;  // Its global rows, in the lists below.
  int32_t count;
};

// Staged groups. Borrows them.
struct FoldsRef {
  std::span<const FoldGroup> groups;
  IndexRef rows;                     // Row of every global row.
  IndexRef outs;                     // Where its output goes.
  const uint8_t* visible = nullptr;  // [rows], 0 = left out.
  int staged = -1;                   // Their number among those that a device was given.
};

// Attention of global rows to all tokens of their sequence, in fp32 over the residual stream.
struct FoldedArgs {
  FoldsRef folds;
  int heads = 1;
  const Weight* query = nullptr;      // [width, width]
  const Weight* key_value = nullptr;  // [2 width, width], of which the values' bias is read.
  const Matrix* keys = nullptr;       // [width, width] of key_value.
  const Matrix* values = nullptr;     // The same.
  Rows x;                             // [rows, width] fp32
  Rows input;                         // T [rows, width] of it.
  Rows out;                           // T [.., width]

  int64_t width() const { return x.width; }
};

// Two linears over the places of a slice with a gelu between, the same for every channel:
// kernels/pool/place_mix.h. Each weight is a row per place that is read.
struct PlaceMixer {
  Table in, in_bias;    // [places, hidden], [1, hidden]
  Table out, out_bias;  // [hidden, places], [1, places]

  int64_t places() const { return in.rows(); }
  int64_t hidden() const { return in.width(); }
};

// One layer's part of a strip of a KV cache. Borrowed; `cache` null while a forward is counted
// before there is one.
struct StripRef {
  const kernels::ProjectionCache* cache = nullptr;
  int strip = 0;
  int layer = 0;
  int heads = 0;  // Key heads.
};

// Staged blocks of a strip, by sequence, in the memory that the backend reads.
struct BlocksRef {
  const int32_t* blocks = nullptr;
  const int32_t* offsets = nullptr;  // Slot j of sequence s lies in block offsets[s] + j / 64.
};

// Staged places of rows in a strip.
struct PlacesRef {
  std::span<const kernels::CachePlace> host;
  const kernels::cuda::CacheRowPlace* device = nullptr;
};

// Staged parts of slices, in the memory that the backend reads.
struct PartsRef {
  const kernels::SlicePart* data = nullptr;
  int64_t count = 0;
};

// Staged rows of states, in the memory that the backend reads.
struct StatesRef {
  const kernels::StateRow* data = nullptr;
  int64_t count = 0;
};

// Staged tokens of sequences with running sums; packed rows and states in the backend's memory.
struct OuterRef {
  std::span<const kernels::OuterSequence> host;
  const kernels::cuda::DeviceOuterSequence* device = nullptr;
};

// Luna's causal attention: kernels/outer/running_outer.h.
struct OuterArgs {
  OuterRef sequences;
  Rows q, k, v, g;  // [rows, heads * D] fp32, equal strides.
  Rows out;         // The same.
  int heads = 1;
  kernels::OuterActivation activation = kernels::OuterActivation::kSoftplusLn2;
};

// Rows of segments that join their sums, and segments that end: rank k of all heads side by side is
// the mean of the segment's keys, and values, weighted by softmax(scores), then a LayerNorm.
struct OpenSegmentArgs {
  PiecesRef pieces;
  int rank = 1;
  LongShortRows from;  // Scores; own_keys and own_values are averaged.
  Rows hidden;         // [rows, width] fp32, averaged too; not given: not.
  Rows hidden_means;   // T [closing * rank, width] for the averages of `hidden`.
  const NormWeight* norm = nullptr;
  StripRef strip;    // Its cache keeps the sums; landmarks go to the strip,
  PlacesRef places;  // [closing * rank].

  int64_t width() const { return from.q.width; }
  int dim() const { return static_cast<int>(width() / strip.heads); }
  int columns() const { return strip.heads * rank; }
  // Columns of a state of sums: those of hidden states come behind those of keys and values.
  int state_columns() const { return hidden ? 2 * columns() : columns(); }
  size_t StateBytes() const;
};

// Scores of positions, to be read as Added biases: out[head, row * stride + i] = (scaled query +
// added) . table[head, i] for the first limits[row] entries.
struct PositionScores {
  PositionTable table;
  IndexRef limits;     // [rows]
  int64_t stride = 0;  // Entries of a row in `out`; no limit is larger.
  Rows out;            // [heads, rows * stride] fp32
};

class Ops {
 public:
  // A linear reads rows past the end of its input, up to a whole panel of them; a device writes
  // as many past the end of its output.
  enum class Tail { kNone, kPanel, kWritten };

  virtual ~Ops() = default;

  Compute compute() const { return shape_.compute; }
  int tile_rows() const { return shape_.tile_rows; }

  // ---- Lists, before the first operation and again after sequences left ----
  virtual PlanRef Stage(const kernels::Plan& plan) = 0;
  virtual IndexRef Stage(std::span<const int32_t> values) = 0;
  virtual SegmentsRef Stage(std::span<const int32_t> offsets, std::span<const uint8_t> visible) = 0;
  // `groups` outlive the forward.
  virtual FoldsRef Stage(std::span<const FoldGroup> groups, std::span<const int32_t> rows,
                         std::span<const int32_t> outs, std::span<const uint8_t> visible) = 0;
  virtual SlicesRef Stage(std::span<const kernels::SliceRows> slices,
                          std::span<const uint8_t> visible) = 0;

  BlocksRef StageBlocks(std::span<const int32_t> blocks, std::span<const int32_t> offsets) {
    return {Stage(blocks).data, Stage(offsets).data};
  }
  virtual PartsRef Stage(std::span<const kernels::SlicePart> parts) = 0;
  virtual StatesRef Stage(std::span<const kernels::StateRow> rows) = 0;
  // `sequences` outlive the forward.
  virtual OuterRef Stage(std::span<const kernels::OuterSequence> sequences) = 0;
  // `cache` null: places are counted.
  virtual PlacesRef StagePlaces(const kernels::ProjectionCache* cache,
                                std::span<const kernels::CachePlace> places) = 0;
  // `pieces` outlive the forward; `cache` as above.
  virtual PiecesRef StagePieces(const kernels::ProjectionCache* cache,
                                std::span<const SegmentPiece> pieces) = 0;

  // ---- Memory of the forward, uninitialised ----
  Rows Take(int64_t count, int64_t width, RowType type, Tail tail = Tail::kNone);
  // Rows that linears read of the residual stream x: x itself where that is possible.
  Rows TakeInput(const Rows& x, NormPlace norms);
  // The place of the rows that Keep leaves of x. A device may use `spare` for it, which is not
  // read any more then.
  virtual Rows TakeKept(const Rows& x, int64_t count, const Rows& spare = {}) = 0;
  // `columns`: of the dynamic projection's scores. `beside`: keys and values as projected stay
  // beside the normalised ones, of every row.
  virtual LongShortRows TakeLongShort(int64_t count, int64_t width, int64_t columns,
                                      bool beside) = 0;

  // ---- Work ----
  virtual void Embed(const EmbedArgs& args) = 0;
  // to[i] = from[rows[i]]; without a row (negative) it stays as it is. REQUIRES: equal widths and
  // types.
  virtual void Gather(const Rows& from, IndexRef rows, const Rows& to) = 0;
  virtual void Gather(const Table& from, IndexRef rows, const Rows& to) = 0;
  // to[places[i]] = from[i]; without a place (negative) it is left out. REQUIRES: equal widths and
  // types, different places.
  virtual void Scatter(const Rows& from, IndexRef places, const Rows& to) = 0;
  // rows = zeros. REQUIRES: dense rows.
  virtual void Clear(const Rows& rows) = 0;
  // out = in + added[index[i]] in T, a row without an index (negative) as it is. `out` may be `in`.
  virtual void AddRows(const Rows& in, const Rows& added, IndexRef index, const Rows& out) = 0;
  // kept[i] = x[rows[i]] for ascending rows; `kept` is TakeKept's, and x is gone.
  virtual void Keep(const Rows& x, IndexRef rows, const Rows& kept) = 0;
  // out = x in T. REQUIRES: out is not x.
  virtual void Narrow(const Rows& x, const Rows& out) = 0;
  // Post-norm: x = norm(x + y), out = x in T. Pre-norm: x = x + y, out = norm(x) in T.
  // y not given: zeros. norm null: none. out not given, or x itself: nothing more is written.
  virtual void Residual(const Rows& x, const Rows& y, const NormWeight* norm, NormPlace place,
                        const Rows& out) = 0;
  // out = in W^T + b, in T or in fp32, as `out` is. REQUIRES: `in` is dense and was taken with a
  // panel behind it.
  virtual void Project(const Weight& weight, const Rows& in, const Rows& out) = 0;
  // The same, then the rotation.
  virtual void ProjectRotated(const Weight& weight, const Rotary& rotary, const Rows& in,
                              const Rows& out) = 0;
  // The same with bias[entries[i]] instead of b (`bias` null: b); without an entry (negative) a row
  // becomes zeros. T.
  virtual void ProjectPlaces(const Weight& weight, const Table* bias, IndexRef entries,
                             const Rows& in, const Rows& out) = 0;
  // q | k | v | scores = in W^T + b. The first `normed` rows' keys and values are normalised and
  // have scores; those of the rows behind stay as projected.
  virtual void ProjectLongShort(const Weight& weight, const NormWeight& norm, const Rows& in,
                                int64_t normed, const LongShortRows& out) = 0;
  virtual void Landmarks(const LandmarkArgs& args) = 0;
  // Rows join the sums of their segments; landmarks of those that end are stored, and their sums
  // are gone.
  virtual void AppendSegments(const OpenSegmentArgs& args) = 0;
  // out[s] = the visible rows of slice s pooled channel by channel; zeros without any. T.
  virtual void PoolSlices(const Rows& from, SlicesRef slices, kernels::SlicePooling pooling,
                          const Rows& out) = 0;
  // sums[i] = the rows of part i pooled channel by channel, fp32; a part that does not begin its
  // slice goes on from what sums[i] holds.
  virtual void PoolParts(const Rows& from, PartsRef parts, kernels::SlicePooling pooling,
                         const Rows& sums) = 0;
  // out = rows of `from` mixed within their slice, masked ones reading as zeros; rows of no slice
  // become zeros. T; `out` may be `from`.
  virtual void MixSlices(const PlaceMixer& mixer, const Rows& from, SlicesRef slices,
                         const Rows& out) = 0;
  // Attention over a staged plan; pointers of the call are this backend's memory.
  virtual void Attend(PlanRef plan, const kernels::Call& call) = 0;
  virtual void AttendFolded(const FoldedArgs& args) = 0;
  // Few rows have no gate.
  virtual void FeedForward(const BlockWeights& weights, const BlockRows& rows) = 0;

  // ---- Rows over a KV cache; linears as Project's, for many rows or few ----
  // Keys and values of a strip, as a source of attention.
  kernels::Source CachedSource(const StripRef& strip, const BlocksRef& blocks) const;
  // Row i of keys and values, heads side by side, goes to places[i]. T; equal strides.
  virtual void Store(const StripRef& strip, const Rows& keys, const Rows& values,
                     const PlacesRef& places) = 0;
  // Row i of `keys` = the keys at places[i]; without a place it stays as it is. T.
  virtual void Load(const StripRef& strip, const PlacesRef& places, const Rows& keys) = 0;
  // Rows of fp32 or T from states, and to them; states lie `shift` floats behind those of the first
  // layer.
  virtual void LoadStates(StatesRef states, int64_t shift, const Rows& rows) = 0;
  virtual void StoreStates(const Rows& rows, StatesRef states, int64_t shift) = 0;
  virtual void AppendOuter(const OuterArgs& args) = 0;
  // packed = kernels::PackOuterRows of `rows` [n, heads * D] fp32.
  virtual void PackOuter(const Rows& rows, float* packed) = 0;
  // Columns [width, 3 width) of in W^T + b, a key and a value, are normalised; row i goes to
  // places[i].
  virtual void StoreProjected(const Weight& weight, const NormWeight& norm, const Rows& in,
                              const StripRef& strip, const PlacesRef& places) = 0;
  // `q`: heads side by side; dots are divided by the root of their width.
  virtual void ScorePositions(const Rows& q, int heads, std::span<const PositionScores> tables) = 0;
  // Post-norm: x = norm(x + in W^T + b), input = x in T; `input` may be x. Pre-norm:
  // x = x + in W^T + b, input = norm(x) in T.
  virtual void ProjectAdded(const Weight& weight, const Rows& in, const NormWeight& norm,
                            NormPlace place, const Rows& x, const Rows& input) = 0;
  // out = norm(activation(in W^T + b)) in T; `out` may be `in`.
  virtual void ProjectActivated(const Weight& weight, Activation activation, const NormWeight& norm,
                                const Rows& in, const Rows& out) = 0;
  // Rows that leave the forward, in W^T + b in fp32: row i goes to to[i] of the host's memory. A
  // device writes `out` instead, which is TakeDelivered's, for whoever runs the forward to bring.
  virtual void Deliver(const Weight& weight, const Rows& in, const Rows& out,
                       std::span<float* const> to) = 0;
  // The same of an adaptive softmax's scores, which become natural-log probabilities of its words;
  // `cutoffs` are the first words of its tails.
  virtual void DeliverAdaptive(const Weight& weight, IndexRef cutoffs, const Rows& in,
                               const Rows& out, std::span<float* const> to) = 0;
  virtual Rows TakeDelivered(int64_t count, int64_t width) = 0;

 protected:
  // Facts of a backend.
  struct Shape {
    Compute compute = Compute::kFp32;
    int tile_rows = 0;          // Queries of a tile of attention.
    int64_t panel_tail = 0;     // Rows that a panel may reach past the end.
    bool zeroes_tails = false;  // Whether what lies there slows products down.
    kernels::DType blocks = kernels::DType::kFloat32;  // The stored type of a cache on the host.
  };

  Ops(const Shape& shape, Carver carver) : shape_(shape), carver_(carver) {}

  Carver& carver() { return carver_; }

 private:
  const Shape shape_;
  Carver carver_;
};

// The factor of running sums' scores: 1 / the root of the head's width.
float OuterScale(const OuterArgs& args);

// Attention with heads side by side in rows of q and out, scores divided by the root of the head's
// width. Sources are to be filled in.
kernels::Call HeadsCall(Compute compute, const Rows& q, const Rows& out, int heads);
// Keys and values with heads side by side in T rows.
kernels::Source HeadsSource(Compute compute, const Rows& keys, const Rows& values, int heads);

}  // namespace longview::models
