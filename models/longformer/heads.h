// The task heads on top of the encoder, all items of a batch together.
// HuggingFace: LongformerClassificationHead, LongformerLMHead, LongformerPooler and the linear
// heads of the other task classes.
#pragma once

#include <span>
#include <vector>

#include "models/longformer/encoder_buffers.h"
#include "models/longformer/item.h"

namespace longview::models {

struct HeadInput {
  const LongformerItem* item = nullptr;
  std::vector<const float*> rows;  // Per sequence: its wanted rows, [wanted, H].
};

struct HeadOutput {
  // [labels], [choices], [T, labels], [T, 2] (start, end) or [T or masks, V]; empty if nothing
  // of the item reads them.
  std::vector<float> logits;
  std::vector<float> embedding;  // [H], normalised if asked for.
};

// Throws what LibTorch throws. A row's bits do not depend on the other items.
std::vector<HeadOutput> ComputeHeads(const EncoderContext& context,
                                     std::span<const HeadInput> inputs);

// Floats of logits that the item's heads compute.
int64_t LogitFloats(const LongformerConfig& config, const LongformerItem& item);

}  // namespace longview::models
