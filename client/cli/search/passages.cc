#include "client/cli/search/passages.h"

#include <algorithm>
#include <numeric>

namespace longview::client {

PassageReader::PassageReader(const Question& question)
    : question_(question),
      settings_(question.embedder != nullptr ? question.embedder->Settings() : ""),
      counter_(question.stems) {}

grpc::Status PassageReader::Read(const std::string& path, const std::string& text,
                                 std::vector<Passage>* passages, Embedder::Cost* cost) {
  const std::vector<Chunk> chunks = CutIntoChunks(text);
  std::vector<float> vectors;
  if (question_.embedder != nullptr && !chunks.empty()) {
    const grpc::Status status = FindVectors(text, chunks, &vectors, cost);
    if (!status.ok()) return status;
  }
  WordCounts of_path;
  if (!question_.stems.empty()) counter_.Count(path, &of_path);
  for (size_t i = 0; i < chunks.size(); ++i) {
    Passage& passage = passages->emplace_back();
    passage.chunk = chunks[i];
    if (!question_.stems.empty()) {
      passage.words = of_path;
      counter_.Count(
          std::string_view(text).substr(chunks[i].begin, chunks[i].end - chunks[i].begin),
          &passage.words);
    }
    if (vectors.empty()) continue;
    const size_t size = vectors.size() / chunks.size();
    const float* vector = vectors.data() + i * size;
    const size_t shared = std::min(size, question_.vector.size());
    passage.cosine = std::inner_product(vector, vector + shared, question_.vector.begin(), 0.0f);
  }
  return grpc::Status::OK;
}

grpc::Status PassageReader::FindVectors(const std::string& text, std::span<const Chunk> chunks,
                                        std::vector<float>* vectors, Embedder::Cost* cost) {
  std::string key;
  if (question_.store != nullptr) {
    key = VectorStore::KeyOf(settings_, text);
    if (auto found = question_.store->Find(key, chunks.size())) {
      *vectors = *std::move(found);
      return grpc::Status::OK;
    }
  }
  const grpc::Status status = question_.embedder->Read(
      text, chunks,
      [&](const Chunk&, std::span<const float> vector) {
        vectors->insert(vectors->end(), vector.begin(), vector.end());
      },
      cost);
  // After one failure the others would fail, too.
  if (!status.ok() || question_.store == nullptr || !not_kept_.ok()) return status;
  not_kept_ = question_.store->Keep(key, chunks.size(), *vectors);
  kept_ = true;
  return status;
}

}  // namespace longview::client
