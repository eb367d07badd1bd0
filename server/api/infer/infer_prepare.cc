#include "server/api/infer/infer_prepare.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "inference/grpc_service.pb.h"
#include "models/model.h"
#include "models/status_macros.h"
#include "server/api/infer/detection_outputs.h"
#include "server/api/infer/infer_items.h"
#include "server/api/infer/infer_parameters.h"
#include "server/api/infer/sequence_outputs.h"
#include "server/api/infer/tensor_decode.h"

namespace longview::server {
namespace {

using models::HostTensor;
using models::TensorType;

std::string RawContents(const HostTensor& tensor) {
  if (tensor.type != TensorType::kBytes) {
    return {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()};
  }
  std::string raw;
  for (const std::string& element : tensor.strings) {
    const auto length = static_cast<uint32_t>(element.size());
    raw.append(reinterpret_cast<const char*>(&length), sizeof(length));
    raw += element;
  }
  return raw;
}

template <typename T, typename Field>
void Copy(const HostTensor& tensor, Field* field) {
  const auto* values = reinterpret_cast<const T*>(tensor.data.data());
  field->Add(values, values + tensor.data.size() / sizeof(T));
}

void TypedContents(const HostTensor& tensor, inference::InferTensorContents& out) {
  switch (tensor.type) {
    case TensorType::kFp32:
      return Copy<float>(tensor, out.mutable_fp32_contents());
    case TensorType::kInt64:
      return Copy<int64_t>(tensor, out.mutable_int64_contents());
    case TensorType::kInt32:
      return Copy<int32_t>(tensor, out.mutable_int_contents());
    case TensorType::kBool:
      return Copy<bool>(tensor, out.mutable_bool_contents());
    case TensorType::kBytes:
      out.mutable_bytes_contents()->Add(tensor.strings.begin(), tensor.strings.end());
  }
}

// Appends one output, raw (little-endian, BYTES with uint32 lengths) or as typed contents.
void AppendOutput(const HostTensor& tensor, bool raw, inference::ModelInferResponse& response) {
  auto* output = response.add_outputs();
  output->set_name(tensor.name);
  output->set_datatype(std::string(DatatypeName(tensor.type)));
  output->mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
  if (raw) {
    *response.add_raw_output_contents() = RawContents(tensor);
  } else {
    TypedContents(tensor, *output->mutable_contents());
  }
}

int64_t Micros(double seconds) { return static_cast<int64_t>(seconds * 1e6); }

bool Plans(const OutputPlan& plan, OutputKind kind) {
  return std::any_of(plan.outputs.begin(), plan.outputs.end(),
                     [kind](const PlannedOutput& output) { return output.kind == kind; });
}

bool IsOfSequences(const PlannedOutput& output) {
  return output.kind == OutputKind::kText || output.kind == OutputKind::kTokenIds ||
         output.kind == OutputKind::kNumTokens || output.kind == OutputKind::kScores;
}

// Sets the options of a generating item that its outputs need.
void SetOutputs(const OutputPlan& plan, models::Request& item) {
  item.tensors = plan.tensors;
  item.typed = plan.typed;
  item.masks = plan.masks;
  if (!item.generation || !Plans(plan, OutputKind::kTokenLogprobs)) return;
  item.generation->echo = true;
  item.generation->logprobs = item.generation->logprobs.value_or(0);
}

}  // namespace

absl::Status PrepareInfer(const ApiContext& context, const inference::ModelInferRequest& request,
                          PreparedInfer& out) {
  const models::ModelInfo& info = out.frame.model->model->info();
  out.frame.id = request.id();
  out.frame.raw = request.raw_input_contents_size() > 0;
  ASSIGN_OR_RETURN(const auto inputs, ReadInputs(request, info));
  ASSIGN_OR_RETURN(const auto parameters, ReadParameters(request.parameters(), info.task));
  ASSIGN_OR_RETURN(auto shape, MeasureItems(inputs, info, context.options.max_items));
  shape.scores = parameters.generation && parameters.generation->max_new_tokens == 0;
  ASSIGN_OR_RETURN(auto plan, PlanOutputs(request, info, shape, parameters.pooling));
  const auto bytes = static_cast<size_t>(LeastAnswerBytes(plan, shape));
  if (auto status = CheckAnswerSize(context, bytes); !status.ok()) return status;
  const bool keep_padding = plan.per_token && !Generates(info.task);
  ASSIGN_OR_RETURN(auto items, BuildItems(inputs, info, parameters, keep_padding));
  for (models::Request& item : items) SetOutputs(plan, item);
  out.items = std::move(items);
  out.pieces = std::all_of(plan.outputs.begin(), plan.outputs.end(), IsOfSequences);
  out.frame.plan = std::move(plan);
  out.timeout = parameters.timeout;
  return absl::OkStatus();
}

absl::Status InTensorNames(const absl::Status& status, size_t item, size_t items) {
  const absl::Status named = WithParam(
      Renamed(status, {{"token_ids", "input_ids"}, {"token_ids_pair", "input_ids_pair"}}));
  return items > 1 ? Prefixed(absl::StrCat("item ", item, ": "), named) : named;
}

absl::StatusOr<inference::ModelInferResponse> BuildInferResponse(
    const ApiContext& context, const InferFrame& frame,
    const std::vector<models::Answer>& answers) {
  inference::ModelInferResponse response;
  response.set_model_name(frame.model->name);
  response.set_model_version(frame.model->version);
  response.set_id(frame.id);
  for (const PlannedOutput& output : frame.plan.outputs) {
    if (output.kind == OutputKind::kMaskPixels) {
      RETURN_IF_ERROR(CheckAnswerSize(context, MaskPixelBytes(answers.front())));
    }
    if (output.kind == OutputKind::kTokenIds) {
      RETURN_IF_ERROR(CheckAnswerSize(context, TokenRowBytes(answers)));
    }
    ASSIGN_OR_RETURN(const auto tensor, JoinOutput(output, frame.model->model->info(), answers));
    AppendOutput(tensor, frame.raw, response);
  }
  if (auto status = CheckAnswerSize(context, response.ByteSizeLong()); !status.ok()) return status;
  return response;
}

void AddTotals(const CallTotals& totals, inference::ModelInferResponse& response) {
  auto& parameters = *response.mutable_parameters();
  parameters["queue_us"].set_int64_param(Micros(totals.queue_seconds));
  parameters["compute_us"].set_int64_param(Micros(totals.compute_seconds));
  parameters["batch_items"].set_int64_param(totals.batch_items);
  parameters["truncated_tokens"].set_int64_param(totals.usage.truncated_tokens);
}

}  // namespace longview::server
