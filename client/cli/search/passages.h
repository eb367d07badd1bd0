// Files as a question sees them: each place's words and its likeness to the question.
#pragma once

#include <grpcpp/support/status.h>

#include <span>
#include <string>
#include <vector>

#include "client/cli/search/chunks.h"
#include "client/cli/search/embedder.h"
#include "client/cli/search/vector_store.h"
#include "client/cli/search/words.h"

namespace longview::client {

struct Passage {
  Chunk chunk;
  WordCounts words;   // Words of the text and of the file's path; empty if none are looked for.
  double cosine = 0;  // 0 where the search does not go by vectors.
};

// A search's question: its words, its vector, or both.
struct Question {
  std::vector<std::string> stems;      // Empty = not by words.
  const Embedder* embedder = nullptr;  // Null = not by vectors. Borrowed, as the next.
  std::vector<float> vector;
  const VectorStore* store = nullptr;  // Null = vectors are not kept.
};

// Reads one file after another; not thread-safe: one for each thread. What it is made of is
// borrowed.
class PassageReader {
 public:
  explicit PassageReader(const Question& question);

  // The passages of a file. REQUIRES: the text is UTF-8.
  grpc::Status Read(const std::string& path, const std::string& text,
                    std::vector<Passage>* passages, Embedder::Cost* cost);

  // Why vectors were not kept, if they could not.
  const absl::Status& not_kept() const { return not_kept_; }
  bool kept() const { return kept_; }

 private:
  grpc::Status FindVectors(const std::string& text, std::span<const Chunk> chunks,
                           std::vector<float>* vectors, Embedder::Cost* cost);

  const Question& question_;
  const std::string settings_;
  WordCounter counter_;
  absl::Status not_kept_;
  bool kept_ = false;
};

}  // namespace longview::client
