// A batch of prepared items on their way through an encoder and its heads.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernels/base/parallel.h"
#include "models/dense/scratch_pool.h"
#include "models/encoder/item.h"
#include "models/encoder/placed_encoder.h"
#include "models/encoder/sentence_pipeline.h"
#include "models/model.h"
#include "models/team_turn.h"

namespace longview::models {

// The shared part behind the encoder, whatever the family. Borrowed.
struct EncoderBackEnd {
  const Tokenizer* tokenizer = nullptr;  // Null: there is none.
  const SentencePipeline* sentence = nullptr;
  const kernels::ParallelFor* pool = nullptr;
};

// Used by one executor thread. Failures of LibTorch surface in Take.
class EncoderTaskRun final : public Run {
 public:
  // Borrowed arguments outlive the run; `teams` and `times` may be null.
  EncoderTaskRun(const PlacedEncoder& encoder, const EncoderBackEnd& back,
                 std::span<const Item* const> items, ScratchPool& scratch, TeamChoice* teams,
                 RunTimes* times = nullptr);

  bool Advance() override;
  void Drop(int i) override;
  absl::StatusOr<Answer> Take(int i) override;

 private:
  bool RunLayer();
  void RunHeads();

  const PlacedEncoder& encoder_;
  const EncoderBackEnd back_;
  ScratchPool& scratch_;
  RunTimes* const times_;
  TeamTurn turn_;
  std::vector<const EncoderItem*> items_;
  std::vector<int> first_sequence_;  // Each item's first among all sequences; one entry more.
  std::vector<bool> dropped_;
  std::unique_ptr<EncoderBatch> batch_;  // From the first Advance on.
  std::vector<HeadOutput> outputs_;      // By item, after the last layer.
  absl::Status status_;
};

}  // namespace longview::models
