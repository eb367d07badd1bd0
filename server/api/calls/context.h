// The collaborators and limits of one Api object, shared by the files of server/api.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"
#include "longview/v1/text.pb.h"
#include "server/api/calls/answer_stream.h"
#include "server/api/calls/call_recorder.h"
#include "server/api/calls/pending_call.h"
#include "server/api/calls/statistics.h"
#include "server/call.h"
#include "server/engine/documents.h"
#include "server/engine/engine.h"
#include "server/lifecycle.h"
#include "server/limits/byte_budget.h"
#include "server/metrics/metrics.h"
#include "server/served/model_store.h"

namespace longview::server {

using GenerateStream = AnswerStream<longview::v1::GenerateResponse>;
using InferStream = AnswerStream<inference::ModelStreamInferResponse>;

class Tracer;  // server/tracing/tracer.h

// Limits and switches the API enforces.
struct ApiOptions {
  size_t max_message_bytes = 64u << 20;  // Limit of an answer as protobuf.
  int max_items = 1024;                  // n of one inference request.
  bool allow_model_control = true;
  std::string version;          // The server's, as in ServerMetadata.
  Tracer* tracer = nullptr;     // Borrowed; null = no call is traced.
  ByteBudget* bytes = nullptr;  // Borrowed, and counts answers; null: nothing does.
};

// Thread-safe; outlives every call.
struct ApiContext {
  ModelStore& store;
  Engine& engine;
  Documents& documents;
  Lifecycle& lifecycle;
  CallRecorder recorder;
  Metrics& metrics;
  StatisticsBook statistics;
  ApiOptions options;
};

// The model of an inference call. UNAVAILABLE while the server stops, NOT_FOUND, or the
// store's word on a model that loads.
absl::StatusOr<ModelHandle> FindModel(ApiContext& context, std::string_view name,
                                      std::string_view version);

// The model of a call that needs one task: name "" = the only model that has it; UNIMPLEMENTED,
// naming what the model does, if it lacks the task. Other errors are FindModel's.
absl::StatusOr<ModelHandle> FindModelForTask(ApiContext& context, std::string_view name,
                                             std::string_view version, models::Task task);

// The longest list of documents or pairs of one call.
inline constexpr int kMaxRerankDocuments = 4096;

bool HasTask(const models::ModelInfo& info, models::Task task);

// The only loaded model that is `fit` where `name` is empty; INVALID_ARGUMENT with the names of
// several.
absl::StatusOr<ModelHandle> FindOnlyModel(
    ApiContext& context, std::string_view name, std::string_view version,
    absl::FunctionRef<bool(const models::ModelInfo&)> fit = [](const auto&) { return true; });

// Whether the task's answers are generated.
bool Generates(models::Task task);

// How a classifier is asked: as one of pairs if it is one and a second text is there.
models::Task ClassificationTask(const models::ModelInfo& info, bool has_pair);

// INVALID_ARGUMENT about one field.
absl::Status BadField(std::string_view field, std::string_view problem);

// INVALID_ARGUMENT if an answer of `bytes` is over max_message_bytes.
absl::Status CheckAnswerSize(const ApiContext& context, size_t bytes);

// The model's refusals begin with the field they are about, "top_k: ...". Makes that field
// the detail's param if no other is there.
absl::Status WithParam(const absl::Status& status);

// `status` with another name for the field its message begins with, where `names` (from, to) has
// one.
using FieldNames = std::initializer_list<std::pair<std::string_view, std::string_view>>;
absl::Status Renamed(const absl::Status& status, FieldNames names);

// A refusal by the model of "text", "text_pair" or "token_ids" as one of `field`, which is the
// caller's name for the document; OfElement adds the index in a list.
absl::Status OfField(const absl::Status& status, std::string_view field);
absl::Status OfElement(const absl::Status& status, std::string_view field, size_t index);

// `status` with `prefix` in front of its message; reason, delay and field stay.
absl::Status Prefixed(std::string_view prefix, const absl::Status& status);

}  // namespace longview::server
