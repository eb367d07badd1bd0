#include "client/cli/search/embedder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace longview::client {
namespace {

// The names that sentence-transformers tries for documents, too.
const char* const kDocumentPrompts[] = {"document", "passage", "corpus"};
// More would wait long for memory and for each other; an answer of 4,096 numbers each is 16 MB.
constexpr size_t kMostChunks = 1024;
// Code has hardly more bytes to a token; a part that is too long all the same is halved.
constexpr size_t kBytesPerToken = 4;
// Tells what a model does with documents. The vector tells a model from another of its name.
const char* const kSample = "A window slides over the words of a long document.";

bool Refuses(const grpc::Status& status, const char* part) {
  return status.error_code() == grpc::StatusCode::INVALID_ARGUMENT &&
         absl::StrContains(status.error_message(), part);
}

bool IsTooLong(const grpc::Status& status) {
  return Refuses(status, "\"truncate\" cuts") || Refuses(status, "is longer than the");
}

int32_t CodePoints(std::string_view text) {
  return static_cast<int32_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
  }));
}

std::span<const float> Floats(const v1::EmbedResponse& response, size_t begin, size_t size) {
  return {response.embedding().data() + begin, size};
}

void Count(const v1::Usage& usage, Embedder::Cost* cost) {
  cost->tokens += usage.input_tokens();
  cost->truncated_tokens += usage.truncated_tokens();
}

}  // namespace

v1::EmbedRequest Embedder::Request(const std::string& text,
                                   const std::optional<std::string>& prompt_name) const {
  v1::EmbedRequest request;
  request.set_model(options_.model);
  request.set_text(text);
  request.set_pooling(options_.pooling);
  request.set_normalize(true);
  if (prompt_name) request.set_prompt_name(*prompt_name);
  return request;
}

grpc::Status Embedder::Ask(const std::string& question, std::vector<float>* vector) {
  v1::EmbedResponse response;
  grpc::Status status =
      client_.Embed(Request(question, options_.prompt_name.value_or("query")), &response);
  if (!options_.prompt_name && Refuses(status, "prompt_name")) {
    status = client_.Embed(Request(question, std::nullopt), &response);
  }
  if (!status.ok()) return status;
  vector->assign(response.embedding().begin(), response.embedding().end());
  return LearnAboutDocuments();
}

grpc::Status Embedder::LearnAboutDocuments() {
  const std::string sample = kSample;
  v1::EmbedResponse response;
  for (const char* name : kDocumentPrompts) {
    const grpc::Status status = client_.Embed(Request(sample, name), &response);
    if (Refuses(status, "prompt_name")) continue;
    if (!status.ok()) return status;
    document_prompt_ = name;
    break;
  }
  v1::EmbedRequest request = Request(sample, document_prompt_);
  v1::TextRange* whole = request.add_chunks();
  whole->set_start(0);
  whole->set_end(CodePoints(sample));
  grpc::Status status = client_.Embed(request, &response);
  late_ = status.ok() && response.chunking() != "separate";
  // Models without the places of their tokens.
  if (Refuses(status, "chunks")) {
    status = client_.Embed(Request(sample, document_prompt_), &response);
  }
  sample_vector_.assign(response.embedding().begin(), response.embedding().end());
  return status;
}

std::string Embedder::Settings() const {
  std::string numbers(reinterpret_cast<const char*>(sample_vector_.data()),
                      sample_vector_.size() * sizeof(float));
  return absl::StrCat(options_.model, "\n", options_.version, "\n", options_.max_tokens, "\n",
                      options_.pooling, "\n", document_prompt_.value_or("none"), "\n", late_, "\n",
                      numbers);
}

grpc::Status Embedder::Read(const std::string& text, std::span<const Chunk> chunks,
                            const OnVector& on_vector, Cost* cost) const {
  const size_t most_bytes = options_.max_tokens > 0
                                ? kBytesPerToken * static_cast<size_t>(options_.max_tokens)
                                : std::numeric_limits<size_t>::max();
  while (!chunks.empty()) {
    size_t count = 1;
    while (count < std::min(chunks.size(), kMostChunks) &&
           chunks[count].end - chunks[0].begin <= most_bytes) {
      ++count;
    }
    const grpc::Status status = ReadPart(text, chunks.first(count), on_vector, cost);
    if (!status.ok()) return status;
    chunks = chunks.subspan(count);
  }
  return grpc::Status::OK;
}

// One pass over the text from the first chunk to the last.
grpc::Status Embedder::ReadPart(const std::string& text, std::span<const Chunk> chunks,
                                const OnVector& on_vector, Cost* cost) const {
  if (!late_) {
    for (const Chunk& chunk : chunks) {
      const grpc::Status status = ReadAlone(text, chunk, on_vector, cost);
      if (!status.ok()) return status;
    }
    return grpc::Status::OK;
  }
  const size_t begin = chunks.front().begin;
  const std::string part = text.substr(begin, chunks.back().end - begin);
  v1::EmbedRequest request = Request(part, document_prompt_);
  int32_t at = 0;
  size_t counted = 0;
  for (const Chunk& chunk : chunks) {
    v1::TextRange* range = request.add_chunks();
    at += CodePoints(std::string_view(part).substr(counted, chunk.begin - begin - counted));
    range->set_start(at);
    at += CodePoints(std::string_view(part).substr(chunk.begin - begin, chunk.end - chunk.begin));
    range->set_end(at);
    counted = chunk.end - begin;
  }
  v1::EmbedResponse response;
  const grpc::Status status = client_.Embed(request, &response);
  if (IsTooLong(status)) {
    if (chunks.size() == 1) return ReadAlone(text, chunks[0], on_vector, cost);
    const size_t half = chunks.size() / 2;
    const grpc::Status first = ReadPart(text, chunks.first(half), on_vector, cost);
    return first.ok() ? ReadPart(text, chunks.subspan(half), on_vector, cost) : first;
  }
  if (!status.ok()) return status;
  Count(response.usage(), cost);
  const size_t size = static_cast<size_t>(response.embedding_size()) / chunks.size();
  for (size_t i = 0; i < chunks.size(); ++i) on_vector(chunks[i], Floats(response, i * size, size));
  return grpc::Status::OK;
}

grpc::Status Embedder::ReadAlone(const std::string& text, const Chunk& chunk,
                                 const OnVector& on_vector, Cost* cost) const {
  v1::EmbedRequest request =
      Request(text.substr(chunk.begin, chunk.end - chunk.begin), document_prompt_);
  request.set_truncate(true);
  v1::EmbedResponse response;
  const grpc::Status status = client_.Embed(request, &response);
  if (!status.ok()) return status;
  Count(response.usage(), cost);
  on_vector(chunk, Floats(response, 0, static_cast<size_t>(response.embedding_size())));
  return grpc::Status::OK;
}

}  // namespace longview::client
