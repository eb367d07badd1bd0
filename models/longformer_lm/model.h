// The autoregressive Longformer, "LongformerForCausalLM", as a family of the registry.
//
// Beltagy et al. 2020, section 4, train it; neither a HuggingFace class nor weights are public, so
// the definition is this project's:
//
//   * config.json and tensor names are those of LongformerForMaskedLM, `*_global` projections may
//   be
//     missing and are not used; `tie_word_embeddings` as there.
//   * A layer's head sees the token itself and attention_window / 2 tokens before it,
//     `attention_dilation` (per layer, or per layer and head) apart; nothing after it, no global
//     tokens. Beltagy's "window" of an autoregressive layer is this one-sided reach plus one.
//   * The token at place t, from 0 on, has position pad_token_id + 1 + t, whatever the ids.
//   * Logits are those of the masked-LM head: decoder(LN(gelu(dense(x)))).
//
// A sequence keeps the widest window of its layers and nothing else: memory does not grow with
// what was read.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/device/device.h"
#include "models/directory/model_directory.h"
#include "models/model.h"

namespace longview::models {

// The two functions of registry.h.
absl::StatusOr<ModelInfo> DescribeLongformerLm(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadLongformerLm(ModelDirectory directory,
                                                        const LoadOptions& options);

// The model on `device`; null: on the host. RESOURCE_EXHAUSTED as ForwardDecoder::Create.
absl::StatusOr<std::unique_ptr<Model>> LoadLongformerLmAt(std::unique_ptr<Device> device,
                                                          ModelDirectory directory,
                                                          const LoadOptions& options,
                                                          std::vector<std::string> notes = {});

}  // namespace longview::models
