#include "server/api/typed/text_requests.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/api/calls/context.h"
#include "server/api/infer/infer_items.h"

namespace longview::server {
namespace {

using google::protobuf::RepeatedField;
using models::Task;

absl::Status CheckNotNegative(std::string_view field, int value) {
  if (value >= 0) return absl::OkStatus();
  return BadField(field, absl::StrCat(value, " is negative"));
}

// The document: exactly one of text and token_ids. An empty text beside token ids is a client's
// default value.
template <typename Proto>
absl::Status ReadDocument(const Proto& in, models::Request& out) {
  const bool has_tokens = in.token_ids_size() > 0;
  if (has_tokens ? !in.text().empty() : !in.has_text()) {
    return BadField("text", absl::StrCat("exactly one of text and token_ids is needed; ",
                                         has_tokens ? "both were given" : "there are 0 tokens"));
  }
  if (has_tokens) {
    out.tokens = ToTokens(in.token_ids());
  } else {
    out.text = in.text();
  }
  return absl::OkStatus();
}

// The fields all text requests share.
template <typename Proto>
absl::StatusOr<models::Request> ReadShared(const Proto& in, Task task) {
  models::Request out;
  out.task = task;
  RETURN_IF_ERROR(ReadDocument(in, out));
  if (in.has_truncate()) out.truncate = in.truncate();
  if (in.global_positions_size() > 0) {
    out.global_positions.emplace(in.global_positions().begin(), in.global_positions().end());
  }
  return out;
}

// Names of prompts for a purpose, as Cohere's and Jina's clients name it, the best first.
std::vector<std::string> PromptsFor(const std::string& purpose) {
  if (purpose == "search_query" || purpose == "retrieval.query") return {purpose, "query"};
  if (purpose == "search_document" || purpose == "retrieval.passage") {
    return {purpose, "document", "passage"};
  }
  return {purpose};
}

}  // namespace

models::TokenInput ToTokens(const RepeatedField<int32_t>& ids) {
  models::TokenInput tokens;
  tokens.ids.assign(ids.begin(), ids.end());
  return tokens;
}

absl::StatusOr<models::Request> ToModelRequest(const longview::v1::ClassifyRequest& request,
                                               const models::ModelInfo& info) {
  const bool has_token_pair = request.token_ids_pair_size() > 0;
  const bool has_text_pair =
      !request.text_pair().empty() || (request.has_text_pair() && request.token_ids_size() == 0);
  auto out = ReadShared(request, ClassificationTask(info, has_text_pair || has_token_pair));
  if (!out.ok()) return out;
  if (has_text_pair) {
    if (!out->text || has_token_pair) {
      return BadField("text_pair", "goes with text, not with token ids");
    }
    out->text_pair = request.text_pair();
  }
  if (has_token_pair) {
    if (!out->tokens) return BadField("token_ids_pair", "goes with token_ids, not with text");
    out->tokens_pair = ToTokens(request.token_ids_pair());
  }
  if (auto status = CheckNotNegative("top_k", request.top_k()); !status.ok()) return status;
  out->top_k = request.top_k();
  out->truncation_direction = request.truncation_direction();
  if (request.return_logits()) out->tensors = {"logits"};
  return out;
}

absl::StatusOr<models::Request> ToModelRequest(const longview::v1::ClassifyTokensRequest& request,
                                               const models::ModelInfo&) {
  auto out = ReadShared(request, Task::kTokenClassification);
  if (!out.ok()) return out;
  out->aggregation = request.aggregation();
  if (request.return_logits()) out->tensors = {"logits"};
  return out;
}

absl::StatusOr<models::Request> ToModelRequest(const longview::v1::AnswerQuestionRequest& request,
                                               const models::ModelInfo&) {
  auto out = ReadShared(request, Task::kQuestionAnswering);
  if (!out.ok()) return out;
  if (out->text && request.question().empty()) {
    return BadField("question", "empty; it is needed with text");
  }
  if (out->tokens && !request.question().empty()) {
    return BadField("question", "goes with text; token_ids hold question and document");
  }
  if (out->text) out->question = request.question();
  if (auto status = CheckNotNegative("max_answer_tokens", request.max_answer_tokens());
      !status.ok()) {
    return status;
  }
  if (auto status = CheckNotNegative("top_k", request.top_k()); !status.ok()) return status;
  out->max_answer_tokens = request.max_answer_tokens();
  out->top_k = request.top_k();
  if (request.return_logits()) out->tensors = {"start_logits", "end_logits"};
  return out;
}

absl::StatusOr<models::Request> ToModelRequest(const longview::v1::FillMaskRequest& request,
                                               const models::ModelInfo&) {
  auto out = ReadShared(request, Task::kFillMask);
  if (!out.ok()) return out;
  if (auto status = CheckNotNegative("top_k", request.top_k()); !status.ok()) return status;
  out->top_k = request.top_k();
  if (request.return_logits()) out->tensors = {"mask_logits"};
  return out;
}

bool AsksForChunks(const longview::v1::EmbedRequest& request) {
  return request.chunks_size() > 0 || request.has_chunk_tokens() || request.chunk_overlap() != 0 ||
         request.has_window_overlap();
}

absl::StatusOr<models::Request> ToModelRequest(const longview::v1::EmbedRequest& request,
                                               const models::ModelInfo&) {
  auto out = ReadShared(request, Task::kEmbedding);
  if (!out.ok()) return out;
  if (request.return_logits()) return BadField("return_logits", "an embedding has no logits");
  if (request.pooling() == "none") {
    return BadField("pooling",
                    "\"none\" leaves no embedding; ask for the output "
                    "last_hidden_state of the Open Inference Protocol");
  }
  out->pooling = request.pooling();
  if (request.has_normalize()) out->normalize = request.normalize();
  if (request.has_prompt()) out->prompt = request.prompt();
  if (request.has_prompt_name()) out->prompt_name = request.prompt_name();
  if (!request.input_type().empty()) out->prompt_choices = PromptsFor(request.input_type());
  if (request.has_dimensions()) out->dimensions = request.dimensions();
  if (request.has_truncate_prompt_tokens()) {
    out->truncate_tokens = request.truncate_prompt_tokens();
  }
  out->truncation_direction = request.truncation_direction();
  for (const longview::v1::TextRange& chunk : request.chunks()) {
    out->chunks.push_back({chunk.start(), chunk.end()});
  }
  if (request.has_chunk_tokens()) out->chunk_tokens = request.chunk_tokens();
  out->chunk_overlap = request.chunk_overlap();
  if (request.has_window_overlap()) out->window_overlap = request.window_overlap();
  out->tensors = {"embedding"};
  out->typed = false;
  return out;
}

namespace {

// A task that a lone document can be prepared for, with the same cost up to the head.
Task LoneDocumentTask(const models::ModelInfo& info) {
  const bool needs_more = info.task == Task::kQuestionAnswering ||
                          info.task == Task::kMultipleChoice ||
                          info.task == Task::kTextPairClassification;
  return needs_more && HasTask(info, Task::kEmbedding) ? Task::kEmbedding : info.task;
}

models::GenerationOptions EstimateOptions(const longview::v1::EstimateRequest& request) {
  models::GenerationOptions options;
  if (request.max_tokens() != 0) options.max_new_tokens = request.max_tokens();
  if (request.n() != 0) options.num_return_sequences = request.n();
  // Several samples of greedy search would be refused as one and the same.
  if (request.n() > 1) options.do_sample = true;
  return options;
}

// Tokens to be generated count too, so a prompt of that length stands for them.
absl::StatusOr<EstimateSubject> EstimateOfLength(const longview::v1::EstimateRequest& request,
                                                 const models::ModelInfo& info) {
  if (request.num_tokens() > info.max_tokens) {
    return BadField("num_tokens", absl::StrCat(request.num_tokens(), " is over the model's limit, ",
                                               info.max_tokens));
  }
  EstimateSubject subject;
  subject.request.emplace();
  subject.request->task = info.task;
  subject.request->tokens.emplace().ids.assign(static_cast<size_t>(request.num_tokens()), 0);
  subject.request->generation = EstimateOptions(request);
  return subject;
}

// Pixel values without values: they stand for any picture of that size.
absl::StatusOr<EstimateSubject> EstimateOfPicture(const longview::v1::EstimateRequest& request,
                                                  const models::ModelInfo& info) {
  constexpr std::string_view kSees = "the model sees pictures; send width and height";
  if (!request.text().empty()) return BadField("text", kSees);
  if (request.token_ids_size() > 0) return BadField("token_ids", kSees);
  if (request.num_tokens() != 0) return BadField("num_tokens", kSees);
  if (request.max_tokens() != 0) return BadField("max_tokens", "the model does not generate");
  if (request.n() < 0 || request.n() > 1) {
    return BadField("n", absl::StrCat(request.n(), "; the model does not generate"));
  }
  if (request.width() < 1) {
    return BadField("width", absl::StrCat(request.width(), " is below 1; send width and height"));
  }
  if (request.height() < 1) {
    return BadField("height", absl::StrCat(request.height(), " is below 1; send width and height"));
  }
  EstimateSubject subject;
  subject.request.emplace().task = info.task;
  models::PixelInput& picture = subject.request->pixel_values.emplace();
  picture.width = request.width();
  picture.height = request.height();
  picture.outline = true;
  return subject;
}

}  // namespace

absl::StatusOr<EstimateSubject> ToEstimateSubject(const longview::v1::EstimateRequest& request,
                                                  const models::ModelInfo& info) {
  if (IsImageTask(info.task)) return EstimateOfPicture(request, info);
  if (request.width() != 0 || request.height() != 0) {
    return BadField(request.width() != 0 ? "width" : "height",
                    "the model reads text; send text, token_ids or num_tokens");
  }
  const bool generates = Generates(info.task);
  if (!generates && request.max_tokens() != 0) {
    return BadField("max_tokens", "the model does not generate");
  }
  if (request.n() < 0 || (!generates && request.n() > 1)) {
    return BadField("n", absl::StrCat(request.n(), generates ? " is negative"
                                                             : "; the model does not generate"));
  }
  const bool has_document = request.has_text() || request.token_ids_size() > 0;
  if (request.num_tokens() != 0) {
    if (has_document) return BadField("num_tokens", "given together with a document; send one");
    if (request.num_tokens() < 0) {
      return BadField("num_tokens", absl::StrCat(request.num_tokens(), " is negative"));
    }
    if (generates) return EstimateOfLength(request, info);
    return EstimateSubject{std::nullopt, request.num_tokens()};
  }
  if (!has_document) return BadField("text", "one of text, token_ids and num_tokens is needed");
  EstimateSubject subject;
  subject.request.emplace();
  subject.request->task = LoneDocumentTask(info);
  if (auto status = ReadDocument(request, *subject.request); !status.ok()) return status;
  if (generates) subject.request->generation = EstimateOptions(request);
  return subject;
}

}  // namespace longview::server
