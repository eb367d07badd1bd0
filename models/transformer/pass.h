// The forward of an encoder of plain transformer layers over a ragged batch: [tokens, H] and
// offsets, no padding. x is the residual stream, fp32 in every compute type.
//
//   post-norm:  x = LN(E[id] + P + S), input = x;   z = attention(x)
//               x = LN(x + z Wo);   x = LN(x + MLP(x))
//   pre-norm:   x = LN(E[id]);   z = attention(LN(x)), the first layer's norm may be none
//               x = x + z Wo;   x = x + MLP(LN(x));   behind the last layer x = LN(x)
//
// MLP(y) = Wo act(Wi y), or Wo (act(Wi y) * (Wg y)). Rotary positions turn queries and keys behind
// their projection. The last layer computes the rows that heads want, of the keys of all.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "models/encoder/pass.h"
#include "models/transformer/config.h"
#include "models/transformer/plan.h"
#include "models/transformer/weights.h"

namespace longview::models {

// Borrows all.
class TransformerPass final : public EncoderPass {
 public:
  TransformerPass(const TransformerConfig& config, const TransformerWeights& weights,
                  Compute compute, Sequences sequences, int tile_rows);

  int layers() const override { return static_cast<int>(config_.layers.size()); }
  void Stage(Backend& backend) override;
  void Take(Backend& backend) override;
  void Embed(Backend& backend) override;
  void Layer(Backend& backend, int layer) override;

  Rows Wanted() const override { return kept_.First(wanted()); }
  int64_t FirstWanted(int place) const override { return plan_.wanted_offsets[place]; }

  RaggedBatch& batch() override { return batch_; }
  void LeaveDropped(int layer) override;

 private:
  void Attend(Backend& backend, int layer);
  void Finish(Backend& backend, int layer);

  bool last(int layer) const { return layer + 1 == layers(); }
  bool pre_norm() const { return config_.norms == NormPlace::kPre; }
  int64_t width() const { return config_.width; }
  int64_t tokens() const { return batch_.rows(); }
  int64_t wanted() const { return plan_.wanted_offsets.back(); }

  const TransformerConfig& config_;
  const TransformerWeights& weights_;
  const Compute compute_;
  const int tile_rows_;
  RaggedBatch batch_;
  TransformerPlan plan_;

  std::vector<int32_t> ids_, places_, kinds_;  // Staged, per row.
  IndexRef ids_ref_, places_ref_, kinds_ref_, wanted_ref_;
  std::map<int, PlanRef> plan_refs_;  // By window.
  PlanRef wanted_plan_ref_;

  Rows x_;            // [tokens, H] residual stream.
  Rows input_;        // T [tokens, H] what linears read of it.
  Rows projections_;  // T [tokens, 3H] queries, keys, values.
  Rows queries_;      // T [wanted, H] of the last layer.
  Rows z_;            // T [tokens, H] attention's output.
  Rows kept_;         // [wanted, H] the last layer's rows of x.
  Rows kept_input_;   // T [wanted, H]
};

}  // namespace longview::models
