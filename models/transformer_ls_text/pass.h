// The bidirectional Transformer-LS encoder over a ragged batch: [tokens, d] and offsets, no
// padding. Definition: Zhu et al. 2021, sections 3.2 to 3.4, as the published `lra/` code computes
// it (pre-LayerNorm layers, two-stage DualLN). A layer, y = LN1(x):
//
//   q, k, v = y W;   k, v = LN_l(k), LN_l(v)            all heads together
//   K', V'  = LN_s(sum over t of softmax_t(y W_p) k, v)  r projected keys per head and document
//   z       = softmax over [K' | window of k]
//   x       = x + z W_o;   x = x + MLP(LN2(x))
//
// A class vector c is one more projected key, LN_s(c W); its own row attends to c W, unnormalised,
// and to the outputs z of the document's tokens.
//
// The residual stream is fp32 in every compute type; with a 16-bit type the inputs of linears and
// of attention are rounded, sums, softmax and norms stay fp32.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "models/encoder/pass.h"
#include "models/ops/long_short.h"
#include "models/transformer_ls_text/config.h"
#include "models/transformer_ls_text/plan.h"
#include "models/transformer_ls_text/weights.h"

namespace longview::models {

// Borrows all.
class LsTextPass final : public EncoderPass {
 public:
  LsTextPass(const LsTextConfig& config, const LsTextWeights& weights, Compute compute,
             Sequences sequences, int tile_rows);

  int layers() const override { return config_.layers; }
  void Stage(Backend& backend) override;
  void Take(Backend& backend) override;
  void Embed(Backend& backend) override;
  void Layer(Backend& backend, int layer) override;

  Rows Wanted() const override { return kept_.First(wanted()); }
  // The class vectors.
  Rows Extra() const override;
  int64_t FirstWanted(int place) const override { return wanted_offsets_[place]; }
  int64_t FirstExtra(int place) const override { return place; }
  int64_t ExtraRows(int) const override { return has_class() ? 1 : 0; }

  RaggedBatch& batch() override { return batch_; }
  void LeaveDropped(int layer) override;

 private:
  struct LayerPlan {
    LsTextPlan host;
    PlanRef tokens, class_rows;
  };

  void MakePlans();
  void EnterClassRows(Backend& backend, int layer);
  void Attend(Backend& backend, const LsTextLayer& weights, const LayerPlan& plan);
  void Finish(Backend& backend, int layer, int64_t rows);

  const LayerPlan& PlanOf(int layer) const { return plans_.at(config_.HasClass(layer)); }
  int64_t width() const { return config_.width; }
  int64_t tokens() const { return batch_.rows(); }
  int64_t wanted() const { return wanted_offsets_.back(); }
  bool has_class() const { return config_.cls != LsClass::kNone; }
  // Whether class rows are tokens with an id, which are embedded like any other.
  bool class_token() const { return config_.cls == LsClass::kFirstToken; }
  int64_t class_rows() const { return has_class() ? batch_.size() : 0; }

  const LsTextConfig& config_;
  const LsTextWeights& weights_;
  const Compute compute_;
  const int tile_rows_;
  RaggedBatch batch_;
  std::map<bool, LayerPlan> plans_;  // By has_class.
  std::vector<int64_t> wanted_offsets_;

  // Staged lists, one entry per row; kept_rows_: rows of wanted tokens, then class rows.
  std::vector<int32_t> ids_, places_, kept_rows_, class_entries_;
  IndexRef ids_ref_, places_ref_, kept_ref_, class_entries_ref_;
  Segments segments_;

  Rows x_;               // [rows, d] residual stream: tokens, then class rows.
  Rows input_;           // T [rows, d] what attention reads.
  LongShortRows parts_;  // Parts of the rows.
  Rows landmarks_;       // T [projected rows, 2d] keys and values side by side.
  Rows z_;               // T [rows, d] attention's output.
  Rows kept_, kept_z_;   // The last layer's rows of x and z.
};

}  // namespace longview::models
