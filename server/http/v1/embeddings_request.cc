#include "server/http/v1/embeddings_request.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/errors.h"
#include "server/http/body_error.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"

namespace longview::server {
namespace {

using longview::v1::EmbedRequest;
using nlohmann::json;

// Takes the value of a successful read, else returns its error.
template <typename T, typename Set>
absl::Status Take(absl::StatusOr<T> value, Set set) {
  if (value.ok()) set(*std::move(value));
  return value.status();
}

// Copied into every item.
absl::Status CheckName(const std::string& name, const std::string& value) {
  constexpr size_t kLongest = 128;
  if (value.size() <= kLongest) return absl::OkStatus();
  return FieldError(name, absl::StrCat("is ", Quoted(value), ", of ", value.size(),
                                       " bytes; the limit is ", kLongest));
}

// Stands in front of every input.
absl::StatusOr<std::string> ReadPrompt(const json& value, const std::string& name) {
  constexpr size_t kLongest = size_t{64} << 10;
  absl::StatusOr<std::string> prompt = ReadString(value, name);
  if (!prompt.ok() || prompt->size() <= kLongest) return prompt;
  return FieldError(name, absl::StrCat("has ", prompt->size(), " bytes, the limit is ", kLongest));
}

// [[start, end], ...]
absl::Status ReadChunks(const json& value, const std::string& name, EmbedRequest* item) {
  constexpr size_t kMostChunks = 4096;
  if (!value.is_array() || value.empty() || value.size() > kMostChunks) {
    return FieldError(name, absl::StrCat("expected 1 to ", kMostChunks, " pairs [start, end], got ",
                                         Describe(value)));
  }
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string field = absl::StrCat(name, "[", i, "]");
    std::vector<int32_t> ends;
    if (absl::Status status = AppendNumbers(value[i], field, &ends); !status.ok()) return status;
    if (ends.size() != 2) return FieldError(field, "expected [start, end]");
    longview::v1::TextRange* chunk = item->add_chunks();
    chunk->set_start(ends[0]);
    chunk->set_end(ends[1]);
  }
  return absl::OkStatus();
}

// Everything but `input`, which is read into copies of `item`.
absl::Status ReadOption(const std::string& name, const json& value, EmbedRequest* item,
                        EmbeddingsRequest* out) {
  const bool named = name == "model" || name == "pooling" || name == "prompt_name" ||
                     name == "truncation_direction";
  if (named && value.is_string()) {
    const absl::Status status = CheckName(name, value.get_ref<const std::string&>());
    if (!status.ok()) return status;
  }
  if (name == "model") {
    return Take(ReadString(value, name), [&](std::string m) { item->set_model(std::move(m)); });
  }
  if (name == "encoding_format") {
    const absl::StatusOr<std::string> format = ReadString(value, name);
    if (!format.ok()) return format.status();
    if (*format != "float" && *format != "base64") {
      return FieldError(name, absl::StrCat("is ", Quoted(*format), ", expected float or base64"));
    }
    out->base64 = *format == "base64";
    return absl::OkStatus();
  }
  if (name == "dimensions") {
    return Take(ReadNumber<int32_t>(value, name), [&](int32_t n) { item->set_dimensions(n); });
  }
  if (name == "prompt") {
    return Take(ReadPrompt(value, name), [&](std::string p) { item->set_prompt(std::move(p)); });
  }
  if (name == "prompt_name") {
    return Take(ReadString(value, name),
                [&](std::string p) { item->set_prompt_name(std::move(p)); });
  }
  if (name == "truncation_direction") {
    return Take(ReadString(value, name),
                [&](std::string d) { item->set_truncation_direction(std::move(d)); });
  }
  if (name == "pooling") {
    return Take(ReadString(value, name), [&](std::string p) { item->set_pooling(std::move(p)); });
  }
  if (name == "normalize") {
    return Take(ReadBool(value, name), [&](bool n) { item->set_normalize(n); });
  }
  if (name == "truncate") {
    return Take(ReadBool(value, name), [&](bool t) { item->set_truncate(t); });
  }
  if (name == "truncate_prompt_tokens") {
    return Take(ReadNumber<int32_t>(value, name),
                [&](int32_t n) { item->set_truncate_prompt_tokens(n); });
  }
  if (name == "window_overlap") {
    return Take(ReadNumber<int32_t>(value, name), [&](int32_t n) { item->set_window_overlap(n); });
  }
  if (name == "chunks") return ReadChunks(value, name, item);
  if (name == "chunk_tokens") {
    return Take(ReadNumber<int32_t>(value, name), [&](int32_t n) { item->set_chunk_tokens(n); });
  }
  if (name == "chunk_overlap") {
    return Take(ReadNumber<int32_t>(value, name), [&](int32_t n) { item->set_chunk_overlap(n); });
  }
  if (name == "user") return absl::OkStatus();
  return FieldError(name, "unknown member");
}

absl::Status ReadIds(const json& ids, const std::string& field, EmbedRequest* item) {
  std::vector<int32_t> values;
  if (absl::Status status = AppendNumbers(ids, field, &values); !status.ok()) return status;
  if (values.empty()) return FieldError(field, "has no tokens");
  item->mutable_token_ids()->Add(values.begin(), values.end());
  return absl::OkStatus();
}

// Takes the texts out of `input`.
absl::Status ReadInput(json& input, const EmbedRequest& item, EmbeddingsRequest* out) {
  constexpr char kField[] = "input";
  if (input.is_string()) {
    out->items.push_back(item);
    out->items.back().set_text(*TakeString(input, kField));
    return absl::OkStatus();
  }
  if (!IsArray(input)) {
    return FieldError(kField, absl::StrCat("expected a string, strings, token ids or lists of "
                                           "token ids, got ",
                                           Describe(input)));
  }
  if (ArraySize(input) == 0) return FieldError(kField, "has no elements");
  if (input.is_binary() || input.front().is_number()) {
    out->items.push_back(item);
    return ReadIds(input, kField, &out->items.back());
  }
  if (input.size() > kMaxEmbeddingInputs) {
    return FieldError(kField, absl::StrCat("has ", input.size(), " elements, the limit is ",
                                           kMaxEmbeddingInputs));
  }
  const bool strings = input.front().is_string();
  for (size_t i = 0; i < input.size(); ++i) {
    const std::string field = absl::StrCat(kField, "[", i, "]");
    out->items.push_back(item);
    absl::Status status =
        strings ? Take(TakeString(input[i], field),
                       [&](std::string text) { out->items.back().set_text(std::move(text)); })
                : ReadIds(input[i], field, &out->items.back());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EmbeddingsRequest> ParseEmbeddings(std::string_view text, size_t max_bytes) {
  absl::StatusOr<json> body = ParseJson(text, max_bytes);
  if (!body.ok()) return body.status();
  if (absl::Status status = ExpectObject(*body); !status.ok()) return status;
  EmbeddingsRequest out;
  EmbedRequest item;
  for (const auto& [name, value] : body->items()) {
    if (name == "input" || value.is_null()) continue;
    if (absl::Status status = ReadOption(name, value, &item, &out); !status.ok()) return status;
  }
  const auto input = body->find("input");
  if (input == body->end()) return FieldError("input", "is missing");
  if (item.chunks_size() > 0 && !input->is_string()) {
    return FieldError("chunks", "goes with a single string");
  }
  if (absl::Status status = ReadInput(*input, item, &out); !status.ok()) return status;
  return out;
}

}  // namespace longview::server
