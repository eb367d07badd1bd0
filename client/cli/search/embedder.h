// Vectors of a question and of the chunks of files, from any model that embeds text.
#pragma once

#include <grpcpp/support/status.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/search/chunks.h"
#include "client/cpp/client.h"

namespace longview::client {

struct EmbedderOptions {
  std::string model;
  std::string version;
  int max_tokens = 0;                      // Read at once at most; 0 = not known.
  std::string pooling;                     // Empty = the model's.
  std::optional<std::string> prompt_name;  // The question's; unset = "query", if there is one.
};

// Vectors have unit length: their products are cosines.
//
// Chunks are embedded late (one pass over the file, a mean over each chunk's tokens) where the
// model pools so, else each by itself. A file longer than the model is read in parts.
//
// Thread-safe after Ask. `client` must outlive it.
class Embedder {
 public:
  Embedder(const Client& client, EmbedderOptions options)
      : client_(client), options_(std::move(options)) {}

  // The question's vector; finds out what the model does with documents, too. To be called once,
  // before Read.
  grpc::Status Ask(const std::string& question, std::vector<float>* vector);

  struct Cost {
    int64_t tokens = 0;
    int64_t truncated_tokens = 0;  // Cut from chunks longer than the model.
  };
  using OnVector = std::function<void(const Chunk& chunk, std::span<const float> vector)>;

  // Calls on_vector for each chunk of the text, in order. REQUIRES: the text is UTF-8.
  grpc::Status Read(const std::string& text, std::span<const Chunk> chunks,
                    const OnVector& on_vector, Cost* cost) const;

  bool late() const { return late_; }
  // All that a text's vectors depend on, beside the text: the model's name and version, what it is
  // asked for, and how it embeds one sentence. Equal settings give equal vectors.
  std::string Settings() const;

 private:
  v1::EmbedRequest Request(const std::string& text,
                           const std::optional<std::string>& prompt_name) const;
  grpc::Status LearnAboutDocuments();
  grpc::Status ReadPart(const std::string& text, std::span<const Chunk> chunks,
                        const OnVector& on_vector, Cost* cost) const;
  grpc::Status ReadAlone(const std::string& text, const Chunk& chunk, const OnVector& on_vector,
                         Cost* cost) const;

  const Client& client_;
  EmbedderOptions options_;
  bool late_ = true;
  std::optional<std::string> document_prompt_;
  std::vector<float> sample_vector_;
};

}  // namespace longview::client
