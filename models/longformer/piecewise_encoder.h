// One document through Longformer's layers in pieces, so that others may go on between them: a
// generator's encoder. The same arithmetic as LongformerPass, whatever the pieces.
//
// The work is a row of stages, each over all rows of the document: embedding and the first
// projection; with many global tokens their keys, per layer; then per layer attention of a run of
// rows, what follows it, and the projection the next layer will read. Rows of the last layer go to
// a sink at once.
//
// LongformerPass runs whole layers, in pieces that are planned once. Here a piece ends wherever
// others may go on, plans the window around its rows, and leaves projections for the next layer in
// memory that outlives it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/cost/stopwatch.h"
#include "models/dense/scratch_pool.h"
#include "models/encoder/sequence.h"
#include "models/longformer/layer.h"

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
  PiecewiseEncoder(const LongformerContext& context, const EncoderSequence& document,
                   EncodedRows& sink, ScratchPool& scratch, RunTimes* times);

  // Exact bytes that it holds from one piece to the next.
  static size_t HeldBytes(const LongformerContext& context, const EncoderSequence& document);
  // Exact bytes of scratch of its largest piece, panel results aside.
  static size_t PieceBytes(const LongformerContext& context, const EncoderSequence& document);

  // Rows computed when `read` of the document's tokens count as read: so many rows of all stages, a
  // whole block of rows or a whole stage at a time.
  int64_t RowsUntil(int64_t read) const;

  // The next piece on the way to `until` (RowsUntil): rows of one stage. Returns whether work is
  // left before it. Throws what LibTorch and the allocator throw.
  bool Advance(int64_t until);

 private:
  enum class Stage { kEnter, kGlobalKeys, kLayer };
  struct Step {
    Stage stage;
    int layer;
    double cost;  // Relative cost of a row.
  };
  // Rows that outlive a piece; T is the compute type.
  struct Held {
    Rows x;                   // [n, H]
    Rows input;               // T [n, H]; x itself for fp32.
    std::array<Rows, 2> qkv;  // T [n, 3H], of this layer and of the next.
    Rows global_keys;         // T [n, 2H], unfolded globals only.
    Rows folded_out;          // T [globals, H] of the layer, folded ones only.
  };

  // The shape that plans depend on.
  struct Shape {
    Shape(const LongformerContext& model, const EncoderSequence& read);
    LongformerContext context;
    const EncoderSequence& document;
    int64_t tokens, width;
    std::vector<int32_t> globals;  // Positions.
    bool folds;                    // Whether projections of globals are folded.
  };

  static Held TakeHeld(const Shape& shape, Backend& backend);
  void PlanSteps(const EncodedRows& sink);
  // Attention of rows first .. first + count - 1 in a layer; of the folded globals.
  static LayerPlan PlanRows(const Shape& shape, int layer, int64_t first, int64_t count);
  static LayerPlan PlanFolded(const Shape& shape);

  // The work of a piece, on any backend.
  static void Enter(Backend& backend, const Shape& shape, const Held& held, int64_t first,
                    int64_t count);
  static void ProjectKeys(Backend& backend, const Shape& shape, const Held& held, int layer,
                          int64_t first, int64_t count);
  static void FoldGlobals(Backend& backend, const Shape& shape, const Held& held, int layer,
                          StagedLayer& plan);
  static void RunLayer(Backend& backend, const Shape& shape, const Held& held, int layer,
                       int64_t first, StagedLayer& plan);
  static void Project(Backend& backend, const Shape& shape, const Held& held, int layer,
                      int64_t first, int64_t count);

  void RunPiece(const Step& step, int64_t first, int64_t count);
  // body(backend), with memory as counted.
  template <typename Body>
  void Run(Body&& body);

  const Shape shape_;
  const LongformerContext& context_;  // Shape and settings.
  EncodedRows& sink_;
  ScratchPool& scratch_;
  RunTimes* const times_;
  std::vector<Step> steps_;
  std::vector<double> costs_;  // Cost of all rows of the steps before each, and of all.
  Scratch memory_;
  Held held_;
  int64_t done_ = 0;  // Rows of all steps.
};

}  // namespace longview::models
