#include "server/api/typed/generate_requests.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/api/calls/context.h"
#include "server/api/typed/text_requests.h"

namespace longview::server {
namespace {

using models::GenerationOptions;
using models::Task;

GenerationOptions ToOptions(const longview::v1::GenerateRequest& in) {
  GenerationOptions out;
  if (in.has_max_tokens()) out.max_new_tokens = in.max_tokens();
  if (in.has_min_new_tokens()) out.min_new_tokens = in.min_new_tokens();
  if (in.has_temperature()) out.temperature = in.temperature();
  if (in.has_top_p()) out.top_p = in.top_p();
  if (in.has_top_k()) out.top_k = in.top_k();
  if (in.has_repetition_penalty()) out.repetition_penalty = in.repetition_penalty();
  if (in.has_seed()) out.seed = in.seed();
  out.stop.assign(in.stop().begin(), in.stop().end());
  if (in.has_n()) out.num_return_sequences = in.n();
  if (in.has_num_beams()) out.num_beams = in.num_beams();
  if (in.has_length_penalty()) out.length_penalty = in.length_penalty();
  if (in.has_no_repeat_ngram_size()) out.no_repeat_ngram_size = in.no_repeat_ngram_size();
  if (in.has_early_stopping()) out.early_stopping = in.early_stopping();
  if (in.has_logprobs()) out.logprobs = in.logprobs();
  out.echo = in.echo();
  return out;
}

}  // namespace

absl::StatusOr<models::Request> ToModelRequest(const longview::v1::GenerateRequest& proto,
                                               const models::ModelInfo& info) {
  const bool has_tokens = proto.token_ids_size() > 0;
  if (has_tokens && !proto.text().empty()) {
    return BadField("text", "both text and token_ids were given; send one");
  }
  // An empty text adds nothing to a document.
  const bool has_text =
      !has_tokens && (proto.document().empty() ? proto.has_text() : !proto.text().empty());
  if (!has_text && !has_tokens && proto.document().empty()) {
    return BadField("text", "one of text, token_ids and document is needed; there are 0 tokens");
  }
  models::Request out;
  out.task = GenerationTask(info);
  if (has_text) out.text = proto.text();
  if (has_tokens) out.tokens = ToTokens(proto.token_ids());
  if (proto.has_truncate()) out.truncate = proto.truncate();
  if (proto.global_positions_size() > 0) {
    out.global_positions.emplace(proto.global_positions().begin(), proto.global_positions().end());
  }
  out.generation = ToOptions(proto);
  return out;
}

absl::StatusOr<std::optional<models::Request>> ToModelRequest(
    const longview::v1::OpenDocumentRequest& proto) {
  const bool has_text = !proto.text().empty();
  const bool has_tokens = proto.token_ids_size() > 0;
  if (has_text && has_tokens) {
    return BadField("text", "one message holds both text and token_ids; send one");
  }
  if (!has_text && !has_tokens) return std::nullopt;
  models::Request out;
  out.task = Task::kTextGeneration;
  if (has_text) out.text = proto.text();
  if (has_tokens) out.tokens = ToTokens(proto.token_ids());
  out.extend_document = true;
  return out;
}

absl::Status InTypedNames(const absl::Status& status, size_t, size_t) {
  return Renamed(status, {{"max_new_tokens", "max_tokens"}, {"num_return_sequences", "n"}});
}

Task GenerationTask(const models::ModelInfo& info) {
  return HasTask(info, Task::kTextGeneration) ? Task::kTextGeneration : Task::kText2TextGeneration;
}

}  // namespace longview::server
