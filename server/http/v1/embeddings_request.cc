#include "server/http/v1/embeddings_request.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/api/calls/copies.h"
#include "server/errors.h"
#include "server/http/embed_inputs.h"
#include "server/http/json/body_error.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"
#include "server/http/member_readers.h"

namespace longview::server {

namespace {

using longview::v1::EmbedRequest;
using nlohmann::json;

// A body whose inputs are not read yet: they go into copies of `like`.
struct EmbeddingsBody {
  Like<EmbedRequest> like;
  json input;
  VectorForm form = VectorForm::kFloat;
  bool late_chunking = false;
  std::string form_by, normalize_by;  // The members that said so.
};

// Stands in front of every input.
absl::Status ReadEmbedPrompt(json& value, const std::string& name, EmbeddingsBody& out) {
  constexpr size_t kLongest = size_t{64} << 10;
  ASSIGN_OR_RETURN(std::string prompt, TakeString(value, name));
  if (prompt.size() > kLongest) {
    return FieldError(name, absl::StrCat("has ", prompt.size(), " bytes, the limit is ", kLongest));
  }
  out.like->set_prompt(std::move(prompt));
  return absl::OkStatus();
}

// INVALID_ARGUMENT if another member said the same thing before.
absl::Status TakeTurn(const std::string& name, std::string& said_by) {
  if (!said_by.empty()) return FieldError(name, absl::StrCat("given beside ", said_by));
  said_by = name;
  return absl::OkStatus();
}

absl::Status ReadNormalize(json& value, const std::string& name, EmbeddingsBody& out) {
  const absl::StatusOr<bool> flag = ReadBool(value, name);
  if (flag.ok()) out.like->set_normalize(*flag);
  return flag.ok() ? TakeTurn(name, out.normalize_by) : flag.status();
}

absl::Status ReadForm(const json& value, const std::string& name, std::span<const VectorForm> known,
                      EmbeddingsBody& out) {
  const absl::StatusOr<VectorForm> form = ReadVectorForm(value, name, known);
  if (form.ok()) out.form = *form;
  return form.ok() ? TakeTurn(name, out.form_by) : form.status();
}

absl::Status ReadEncodingFormat(json& value, const std::string& name, EmbeddingsBody& out) {
  constexpr VectorForm kKnown[] = {VectorForm::kFloat, VectorForm::kBase64};
  return ReadForm(value, name, kKnown, out);
}

// Jina takes a list of forms, too.
absl::Status ReadEmbeddingType(json& value, const std::string& name, EmbeddingsBody& out) {
  constexpr VectorForm kKnown[] = {VectorForm::kFloat, VectorForm::kBase64, VectorForm::kBinary,
                                   VectorForm::kUbinary};
  if (!value.is_array()) return ReadForm(value, name, kKnown, out);
  if (value.size() == 1) return ReadForm(value.front(), name, kKnown, out);
  return FieldError(name, absl::StrCat("expected one form, got ", value.size()));
}

// [[start, end], ...]
absl::Status ReadChunks(json& value, const std::string& name, EmbeddingsBody& out) {
  constexpr size_t kMostChunks = 4096;
  if (!value.is_array() || value.empty() || value.size() > kMostChunks) {
    return FieldError(name, absl::StrCat("expected 1 to ", kMostChunks, " pairs [start, end], got ",
                                         Describe(value)));
  }
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string field = absl::StrCat(name, "[", i, "]");
    std::vector<int32_t> ends;
    RETURN_IF_ERROR(AppendNumbers(value[i], field, &ends));
    if (ends.size() != 2) return FieldError(field, "expected [start, end]");
    longview::v1::TextRange* chunk = out.like->add_chunks();
    chunk->set_start(ends[0]);
    chunk->set_end(ends[1]);
  }
  return absl::OkStatus();
}

const MemberTable<EmbeddingsBody>& EmbeddingsTable() {
  using enum MemberOf;
  using Body = EmbeddingsBody;
  static const auto* const table = new MemberTable<EmbeddingsBody>{
      {"model", kOpenAi,
       ReadsName(+[](Body& b, std::string m) { b.like->set_model(std::move(m)); })},
      {"input", kOpenAi, Keeps(&Body::input)},
      {"encoding_format", kOpenAi, ReadEncodingFormat},
      {"dimensions", kOpenAi, Reads(+[](Body& b, int32_t n) { b.like->set_dimensions(n); })},
      {"user", kOpenAi, NoEffect{}},
      {"embedding_type", kJina, ReadEmbeddingType},
      {"normalized", kJina, ReadNormalize},
      {"task", kJina,
       ReadsName(+[](Body& b, std::string t) { b.like->set_input_type(std::move(t)); })},
      {"late_chunking", kJina, Reads(+[](Body& b, bool f) { b.late_chunking = f; })},
      {"return_multivector", kJina, Refused{"is not served; /v2 has last_hidden_state"}},
      {"truncate_prompt_tokens", kVllm,
       Reads(+[](Body& b, int32_t n) { b.like->set_truncate_prompt_tokens(n); })},
      {"priority", kVllm, NoEffect{}},
      {"normalize", kVllm, ReadNormalize},
      {"prompt", kLongview, ReadEmbedPrompt},
      {"prompt_name", kLongview,
       ReadsName(+[](Body& b, std::string p) { b.like->set_prompt_name(std::move(p)); })},
      {"pooling", kLongview,
       ReadsName(+[](Body& b, std::string p) { b.like->set_pooling(std::move(p)); })},
      {"truncate", kLongview, Reads(+[](Body& b, bool t) { b.like->set_truncate(t); })},
      {"truncation_direction", kLongview,
       ReadsName(+[](Body& b, std::string d) { b.like->set_truncation_direction(std::move(d)); })},
      {"chunks", kLongview, ReadChunks},
      {"chunk_tokens", kLongview, Reads(+[](Body& b, int32_t n) { b.like->set_chunk_tokens(n); })},
      {"chunk_overlap", kLongview,
       Reads(+[](Body& b, int32_t n) { b.like->set_chunk_overlap(n); })},
      {"window_overlap", kLongview,
       Reads(+[](Body& b, int32_t n) { b.like->set_window_overlap(n); })},
  };
  return *table;
}

absl::Status ReadInput(EmbeddingsBody& body, EmbeddingsRequest& out) {
  constexpr char kField[] = "input";
  if (body.input.is_null()) return FieldError(kField, "is missing");
  if (body.like->chunks_size() > 0 && !body.input.is_string()) {
    return FieldError("chunks", "goes with a single string");
  }
  ASSIGN_OR_RETURN(std::vector<EmbedRequest> items, ReadEmbedInputs(body.input, kField, body.like));
  out.items = std::move(items);
  if (!body.late_chunking) return absl::OkStatus();
  for (const bool given : {body.like->chunks_size() > 0, body.like->has_chunk_tokens()}) {
    if (given) return FieldError("late_chunking", "given beside chunks or chunk_tokens; send one");
  }
  ASSIGN_OR_RETURN(EmbedRequest document, JoinToDocument(std::move(out.items)));
  out.items.clear();
  out.items.push_back(std::move(document));
  out.late_chunking = true;
  return absl::OkStatus();
}

using longview::v1::EmbedRequest;

constexpr char kLate[] = "late_chunking";

// REQUIRES: UTF-8.
int CodePointsOf(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// Whether a word would go on from the first text into the second.
bool GrowTogether(std::string_view first, std::string_view second) {
  const auto space = [](char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); };
  return !first.empty() && !second.empty() && !space(first.back()) && !space(second.front());
}

}  // namespace

absl::StatusOr<EmbeddingsRequest> ParseEmbeddings(std::string_view text, size_t max_bytes) {
  ASSIGN_OR_RETURN(json object, ParseObject(text, max_bytes));
  EmbeddingsBody body;
  RETURN_IF_ERROR(EmbeddingsTable().Read(object, body));
  EmbeddingsRequest out;
  out.form = body.form;
  RETURN_IF_ERROR(ReadInput(body, out));
  return out;
}

std::vector<MemberInfo> EmbeddingsMembers() { return EmbeddingsTable().infos(); }

absl::StatusOr<EmbedRequest> JoinToDocument(std::vector<EmbedRequest> texts) {
  EmbedRequest document = texts.front();
  std::string text;
  int at = 0;  // Code points of `text`.
  for (EmbedRequest& part : texts) {
    if (part.token_ids_size() > 0) return FieldError(kLate, "goes with texts, not with token ids");
    if (GrowTogether(text, part.text())) {
      text.push_back(' ');
      ++at;
    }
    longview::v1::TextRange* const chunk = document.add_chunks();
    chunk->set_start(at);
    at += CodePointsOf(part.text());
    chunk->set_end(at);
    text += part.text();
    part.clear_text();
  }
  document.set_text(std::move(text));
  return document;
}

absl::Status OfLateInputs(const absl::Status& status) {
  constexpr std::string_view kChunks = "chunks";
  const std::string message(status.message());
  if (!message.starts_with(kChunks)) return status;
  const std::string rest = message.substr(kChunks.size());
  ErrorDetail detail = GetErrorDetail(status);
  detail.param = rest.starts_with('[') ? "input" : kLate;
  return MakeError(status.code(), absl::StrCat(detail.param, rest), detail);
}

}  // namespace longview::server
