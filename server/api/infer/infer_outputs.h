// The output tensors of an inference request: which ones it gets, and how answers become tensors.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"
#include "models/model.h"
#include "server/api/infer/infer_items.h"

namespace longview::server {

// How an output comes about.
enum class OutputKind {
  kTensor,         // A tensor of the model, unchanged.
  kProbabilities,  // From logits.
  kLabel,          // Name of the highest logit.
  kEntities,       // JSON from the typed answer; kAnswer and kTop too.
  kAnswer,
  kTop,
  kText,  // A row for each generated sequence; kTokenIds, kNumTokens and kScores too.
  kTokenIds,
  kNumTokens,
  kScores,
  kTokenLogprobs,  // From the prompt's log-probabilities.
  kBoxes,          // From the detections; all kinds below too.
  kDetectionScores,
  kDetectionLabels,
  kDetectionNames,
  kMaskRuns,
  kMaskPixels,
};

struct PlannedOutput {
  OutputKind kind = OutputKind::kTensor;
  models::TensorSpec spec;
  int classes = 0;  // Above 0: so many of the best as text, which is Triton's classification.
};

struct OutputPlan {
  std::vector<PlannedOutput> outputs;  // In the order of the answer.
  std::vector<std::string> tensors;    // To ask of the model.
  bool typed = false;                  // Whether typed results are needed.
  bool per_token = false;              // Some output has one row per token.
  bool masks = false;                  // Whether masks of detections are needed.
};

// The outputs a request names, in its order; else the model's defaults that it can have
// (entities need text, outputs per token one item, those of a scored prompt max_tokens 0; pooling
// "none" leaves last_hidden_state for embedding). An output's parameter `datatype` chooses among
// the forms that masks have. INVALID_ARGUMENT names the output.
absl::StatusOr<OutputPlan> PlanOutputs(const inference::ModelInferRequest& request,
                                       const models::ModelInfo& info, const ItemShape& shape,
                                       const std::string& pooling);

// Bytes the answer surely takes, from the shapes known before it runs.
double LeastAnswerBytes(const OutputPlan& plan, const ItemShape& shape);

// One output of all items: `[n, ...]`; of generators one row per sequence. INTERNAL if an answer
// lacks a tensor.
absl::StatusOr<models::HostTensor> JoinOutput(const PlannedOutput& output,
                                              const models::ModelInfo& info,
                                              const std::vector<models::Answer>& answers);

}  // namespace longview::server
