#include "models/encoder/text_chunks.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/encoder/draft.h"
#include "models/text/utf8.h"

namespace longview::models {
namespace {

constexpr size_t kMostRanges = 4096;   // Chunks that a request names.
constexpr size_t kMostChunks = 16384;  // Chunks that chunk_tokens makes.

// A token with text of the document; positions without the prompt.
struct TextToken {
  int32_t index = 0;
  int start = 0, end = 0;
};

// By their ends, which ascend anyway.
std::vector<TextToken> TokensOfText(const std::string& prompt, const Encoding& encoding,
                                    int32_t masked) {
  const auto before = static_cast<int>(CodePoints(prompt));
  std::vector<TextToken> tokens;
  for (size_t t = 0; t < encoding.ids.size(); ++t) {
    const auto [begin, end] = encoding.offsets[t];
    if (encoding.special_mask[t] != 0 || end <= begin || end - 1 < before) continue;
    if (encoding.ids[t] == masked) continue;
    tokens.push_back({static_cast<int32_t>(t), std::max(begin - before, 0), end - before});
  }
  std::ranges::stable_sort(tokens, {}, &TextToken::end);
  return tokens;
}

TextChunks ChunksOf(const std::vector<TextToken>& tokens) {
  TextChunks chunks;
  for (const TextToken& token : tokens) chunks.tokens.positions.push_back(token.index);
  return chunks;
}

absl::StatusOr<TextChunks> ByRanges(const std::vector<TextRange>& ranges,
                                    const std::vector<TextToken>& tokens) {
  TextChunks chunks = ChunksOf(tokens);
  chunks.ranges = ranges;
  // The first token that ends behind a position.
  const auto behind = [&](int position) {
    const auto at = std::ranges::upper_bound(tokens, position, {}, &TextToken::end);
    return static_cast<int32_t>(at - tokens.begin());
  };
  for (size_t i = 0; i < ranges.size(); ++i) {
    const TokenRange own = {behind(ranges[i].start), behind(ranges[i].end)};
    chunks.tokens.chunks.push_back(own);
    if (own.begin == own.end) {
      return BadRequest(
          absl::StrCat("chunks[", i, "]"),
          absl::StrCat("no token ends in [", ranges[i].start, ", ", ranges[i].end, ")"));
    }
  }
  return chunks;
}

absl::StatusOr<TextChunks> ByTokens(size_t length, size_t overlap,
                                    const std::vector<TextToken>& tokens) {
  if (tokens.empty()) return BadRequest("chunk_tokens", "the text has no tokens");
  TextChunks chunks = ChunksOf(tokens);
  for (size_t begin = 0;; begin += length - overlap) {
    const size_t end = std::min(begin + length, tokens.size());
    chunks.tokens.chunks.push_back({static_cast<int32_t>(begin), static_cast<int32_t>(end)});
    chunks.ranges.push_back({tokens[begin].start, tokens[end - 1].end});
    if (end == tokens.size()) return chunks;
    if (chunks.tokens.chunks.size() == kMostChunks) {
      return BadRequest("chunk_tokens", absl::StrCat("gives more than ", kMostChunks, " chunks"));
    }
  }
}

}  // namespace

absl::Status CheckChunkSettings(const Request& request) {
  const char* field = request.chunks.empty() ? "chunk_tokens" : "chunks";
  if (request.task != Task::kEmbedding) return BadRequest(field, "goes with embeddings");
  if (!request.text) return BadRequest(field, "goes with text, not with token ids");
  if (request.truncate.value_or(false)) {
    return BadRequest(field, "does not go together with truncate");
  }
  if (request.truncate_tokens) {
    return BadRequest(field, "does not go together with truncate_prompt_tokens");
  }
  if (request.text_pair) return BadRequest(field, "does not go together with text_pair");
  if (!request.chunks.empty()) {
    if (request.chunk_tokens || request.chunk_overlap != 0) {
      return BadRequest("chunks", "given together with chunk_tokens or chunk_overlap; send one");
    }
    if (request.chunks.size() > kMostRanges) {
      return BadRequest("chunks",
                        absl::StrCat(request.chunks.size(), " chunks, the limit is ", kMostRanges));
    }
    const int64_t length = CodePoints(*request.text);
    for (size_t i = 0; i < request.chunks.size(); ++i) {
      const auto [start, end] = request.chunks[i];
      if (start >= 0 && start < end && end <= length) continue;
      return BadRequest(absl::StrCat("chunks[", i, "]"),
                        absl::StrCat("[", start, ", ", end, "] is not within the text's ", length,
                                     " code points, start before end"));
    }
    return absl::OkStatus();
  }
  if (!request.chunk_tokens) {
    return request.chunk_overlap != 0
               ? BadRequest("chunk_overlap", "goes with chunk_tokens")
               : BadRequest("window_overlap", "goes with chunks or chunk_tokens");
  }
  if (*request.chunk_tokens < 1) {
    return BadRequest("chunk_tokens", absl::StrCat(*request.chunk_tokens, " is below 1"));
  }
  if (request.chunk_overlap < 0 || request.chunk_overlap >= *request.chunk_tokens) {
    return BadRequest("chunk_overlap", absl::StrCat(request.chunk_overlap, " is not in [0, ",
                                                    *request.chunk_tokens, "), chunk_tokens"));
  }
  return absl::OkStatus();
}

absl::StatusOr<TextChunks> FindTextChunks(const Request& request, const std::string& prompt,
                                          const Encoding& encoding, int32_t masked) {
  const std::vector<TextToken> tokens = TokensOfText(prompt, encoding, masked);
  if (!request.chunks.empty()) return ByRanges(request.chunks, tokens);
  return ByTokens(static_cast<size_t>(*request.chunk_tokens),
                  static_cast<size_t>(request.chunk_overlap), tokens);
}

}  // namespace longview::models
