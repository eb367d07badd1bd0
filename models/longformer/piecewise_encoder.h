// One document through Longformer's layers in pieces, so that others may go on between them: a
// generator's encoder. The same arithmetic as EncoderRun, whatever the pieces.
//
// The work is a row of stages, each over all rows of the document: embedding and the first
// projection; with many global tokens their keys, per layer; then per layer attention of a run of
// rows, what follows it, and the projection the next layer will read. Rows of the last layer go to
// a sink at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/dense/scratch_keeper.h"
#include "models/encoder/sequence.h"
#include "models/layers/stopwatch.h"
#include "models/longformer/encoder_buffers.h"

namespace longview::models {

// Takes the encoder's last hidden states.
class EncodedRows {
 public:
  virtual ~EncodedRows() = default;
  // Rows first .. first + count - 1: x fp32, input in the compute type and readable a panel past
  // the end; both [count, H]. In order. May throw what LibTorch throws.
  virtual void Take(int64_t first, int64_t count, const float* x, const std::byte* input) = 0;
  // Multiply-adds of linears it makes of one row.
  virtual double LinearWork() const = 0;
};

// Belongs to the executor's thread.
class PiecewiseEncoder {
 public:
  // All borrowed; `times` may be null. The document has a token. Throws std::bad_alloc.
  PiecewiseEncoder(const EncoderContext& context, const EncoderSequence& document,
                   EncodedRows& sink, ScratchKeeper& scratch, EncoderTimes* times);

  // Exact bytes that it holds from one piece to the next.
  static size_t HeldBytes(const EncoderContext& context, const EncoderSequence& document);
  // Exact bytes of scratch of its largest piece, panel results aside.
  static size_t PieceBytes(const EncoderContext& context, const EncoderSequence& document);

  // Where the work stands when `read` of the document's tokens count as read: so many rows of all
  // stages, a whole block of rows or a whole stage at a time.
  int64_t RowsUntil(int64_t read) const;

  // The next piece on the way to `until` (RowsUntil): rows of one stage. Returns whether work is
  // left before it. Throws what LibTorch and the allocator throw.
  bool Advance(int64_t until);

 private:
  enum class Stage { kEnter, kGlobalKeys, kLayer };
  struct Step {
    Stage stage;
    int layer;
    double cost;  // Of a row, relative.
  };
  // What outlives a piece; P a panel, T the compute type.
  struct Held {
    float* x = nullptr;                  // [n + P, H]
    std::byte* input = nullptr;          // T [n + P, H]; x itself for fp32.
    std::array<std::byte*, 2> qkv = {};  // T [n, 3H], of this layer and of the next.
    std::byte* global_keys = nullptr;    // T [n, 2H], unfolded globals only.
    std::byte* folded_out = nullptr;     // T [globals, H] of the layer, folded ones only.
  };

  // What plans depend on.
  struct Shape {
    Shape(const EncoderContext& context, const EncoderSequence& document);
    EncoderContext context;
    const EncoderSequence& document;
    int64_t tokens, width;
    std::vector<int32_t> globals;  // Positions.
    bool folds;                    // Their projections, if there are any.
  };

  static Held CarveHeld(const Shape& shape, Carver& carver);
  void PlanSteps(const EncodedRows& sink);
  // Attention of rows first .. first + count - 1 in a layer; of the folded globals.
  static LayerPlan PlanRows(const Shape& shape, int layer, int64_t first, int64_t count);
  static LayerPlan PlanFolded(const Shape& shape);
  // The buffers of a piece around the held ones.
  static EncoderBuffers CarvePiece(const Shape& shape, const Held& held, const LayerPlan& plan,
                                   Carver& carver);

  void RunPiece(const Step& step, int64_t first, int64_t count);
  void Enter(int64_t first, int64_t count);
  void ProjectKeys(int layer, int64_t first, int64_t count);
  void FoldGlobals(int layer);
  void RunLayer(int layer, int64_t first, int64_t count);
  void AttendLocal(const LayerPlan& plan, int64_t first, const EncoderBuffers& buffers);
  void Project(int layer, int64_t first, int64_t count);

  const Shape shape_;
  const EncoderContext& context_;  // Of the shape.
  EncodedRows& sink_;
  ScratchKeeper& scratch_;
  EncoderTimes* const times_;
  const int64_t width_, row_bytes_;
  std::vector<Step> steps_;
  std::vector<double> costs_;  // Of all rows of the steps before each, and of all.
  Scratch memory_;
  Held held_;
  int64_t done_ = 0;  // Rows of all steps.
};

}  // namespace longview::models
